#!/usr/bin/env python3
"""Writes data/quantised/formats.json: small checkpoints as quantisers store them, their weights.

  make_quantised_goldens.py [--check]

Needs numpy, and transformers and torch for the cases whose `reference` is transformers. The others
are packed and dequantised here from the description of each format, element by element, without
its library:
  compressed-tensors  https://github.com/vllm-project/compressed-tensors (pack_quantized/helpers.py,
                      nvfp4/helpers.py, quantization/lifecycle/forward_helpers.py)
  gptq                https://github.com/AutoGPTQ/AutoGPTQ (nn_modules/qlinear/qlinear_cuda.py)
  awq                 https://github.com/casper-hansen/AutoAWQ (utils/packing_utils.py)
  bitsandbytes        https://github.com/bitsandbytes-foundation/bitsandbytes (functional.py)
  hqq                 https://github.com/mobiusml/hqq (core/quantize.py, core/bitpack.py)
Values are float32 and computed in float32. Tensors are hexadecimal, little-endian. --check compares
with the existing file.
"""

import argparse
import json
import os
import pathlib

import numpy as np

os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")
PATH = pathlib.Path(__file__).parent / "data" / "quantised" / "formats.json"
F32 = np.float32
E2M1 = np.array([0, .5, 1, 1.5, 2, 3, 4, 6, -0., -.5, -1, -1.5, -2, -3, -4, -6], F32)
NF4 = np.array([-1, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453,
                -0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0,
                0.07958029955625534, 0.16093020141124725, 0.24611230194568634,
                0.33791524171829224, 0.44070982933044434, 0.5626170039176941, 0.7229568362236023,
                1], F32)
FP4 = np.array([0, .0625, 8, 12, 4, 6, 2, 3, -0., -.0625, -8, -12, -4, -6, -2, -3], F32) / F32(12)


def bf16(x):
  """Rounds to bfloat16, to nearest even; returns (bits, float32)."""
  bits = np.asarray(x, F32).view(np.uint32).astype(np.uint64)
  top = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
  return top, (top.astype(np.uint32) << 16).view(F32)


def e4m3(code):
  """Value of an FP8 E4M3FN code."""
  sign, exponent, mantissa = code >> 7, code >> 3 & 15, code & 7
  value = mantissa * 2.0**-9 if exponent == 0 else (8 + mantissa) * 2.0**(exponent - 10)
  return -value if sign else value


E4M3 = np.array([e4m3(c) if c & 127 != 127 else np.nan for c in range(256)], F32)


def stored(array, dtype=None):
  names = {"float32": "F32", "float16": "F16", "int8": "I8", "int32": "I32", "int64": "I64",
           "uint8": "U8"}
  array = np.ascontiguousarray(array)
  return {"dtype": dtype or names[array.dtype.name], "shape": list(array.shape),
          "bytes": array.tobytes().hex()}


def stream(codes, bits):
  """Packs codes one after another, lowest bits first, into whole int32 words."""
  words = [0] * -(-len(codes) * bits // 32)
  for i, code in enumerate(codes):
    for b in range(bits):
      at = i * bits + b
      words[at // 32] |= (int(code) >> b & 1) << at % 32
  return np.array(words, np.uint32).view(np.int32)


def scales_of(rng, shape, kind, low=0.002, high=0.05):
  """Returns (stored tensor, float32 values)."""
  scales = rng.uniform(low, high, shape).astype(F32)
  if kind == "F16":
    half = scales.astype(np.float16)
    return stored(half), half.astype(F32)
  if kind == "BF16":
    bits, scales = bf16(scales)
    return stored(bits, "BF16"), scales
  return stored(scales), scales


class Case:
  def __init__(self, name, config, reference="the format's description"):
    self.name, self.config, self.reference = name, config, reference
    self.tensors, self.weights = {}, {}

  def expect(self, name, values):
    assert values.dtype == F32
    self.weights[name] = stored(values)

  def json(self):
    return {"name": self.name, "reference": self.reference, "config": self.config,
            "tensors": self.tensors, "weights": self.weights}


def gptq(rng, bits, rows, cols, group, act=False, v2=False, kind="F16", sym=False):
  size = cols if group == -1 else group
  groups = -(-cols // size)
  config = {"quant_method": "gptq", "bits": bits, "group_size": group, "desc_act": act, "sym": sym}
  if v2:
    config["checkpoint_format"] = "gptq_v2"
  case = Case(f"gptq {bits} bits, groups of {group}{', act' if act else ''}{', v2' if v2 else ''}"
              f"{', sym' if sym else ''}", config)
  codes = rng.integers(0, 2**bits, (rows, cols))
  zeros = rng.integers(0 if v2 else 1, 2**bits, (rows, groups))
  if sym:
    zeros[:] = 2**(bits - 1)
  scale_tensor, scales = scales_of(rng, (groups, rows), kind)
  index = np.arange(cols) // size
  if act:
    index = rng.permutation(index)
  base = "model.layers.0.mlp.up_proj"
  case.tensors[base + ".qweight"] = stored(np.stack([stream(r, bits) for r in codes], 1))
  kept = zeros if v2 else zeros - 1
  case.tensors[base + ".qzeros"] = stored(np.stack([stream(z, bits) for z in kept.T]))
  case.tensors[base + ".scales"] = scale_tensor
  if act or bits != 4:
    case.tensors[base + ".g_idx"] = stored(index.astype(np.int32))
  values = np.zeros((rows, cols), F32)
  for r in range(rows):
    for c in range(cols):
      g = index[c]
      values[r, c] = F32(codes[r, c] - zeros[r, g]) * scales[g, r]
  case.expect(base + ".weight", values)
  return case


def awq(rng, rows, cols, group):
  size = cols if group == -1 else group
  groups = cols // size
  case = Case(f"awq, groups of {group}", {"quant_method": "awq", "bits": 4, "group_size": group,
                                          "version": "gemm", "zero_point": True,
                                          "modules_to_not_convert": ["lm_head"]})
  codes = rng.integers(0, 16, (cols, rows))
  zeros = rng.integers(0, 16, (groups, rows))
  scale_tensor, scales = scales_of(rng, (groups, rows), "F16")
  order = [0, 2, 4, 6, 1, 3, 5, 7]
  pack = lambda m: np.stack([stream([line[w * 8 + order[i]] for w in range(rows // 8)
                                     for i in range(8)], 4) for line in m])
  base = "model.layers.0.self_attn.q_proj"
  case.tensors[base + ".qweight"] = stored(pack(codes))
  case.tensors[base + ".qzeros"] = stored(pack(zeros))
  case.tensors[base + ".scales"] = scale_tensor
  values = np.zeros((rows, cols), F32)
  for r in range(rows):
    for c in range(cols):
      values[r, c] = F32(codes[c, r] - zeros[c // size, r]) * scales[c // size, r]
  case.expect(base + ".weight", values)
  return case


def compressed(name, **keys):
  return Case("compressed-tensors " + name, {
      "quant_method": "compressed-tensors", "quantization_status": "compressed",
      "global_compression_ratio": None, "ignore": ["lm_head"], **keys})


def group_of(weights, targets=("Linear",), **keys):
  return {"targets": list(targets), "weights": weights, "input_activations": None,
          "output_activations": None, **keys}


def packed(rng, case, base, bits, rows, cols, size, kind="BF16", sym=True, act=False):
  """One module of pack-quantized."""
  groups = -(-cols // size)
  half = 2**(bits - 1)
  codes = rng.integers(-half, half, (rows, cols))
  zeros = np.zeros((rows, groups), int) if sym else rng.integers(-half, half, (rows, groups))
  scale_tensor, scales = scales_of(rng, (rows, groups), kind)
  index = np.arange(cols) // size
  if act:
    index = rng.permutation(index)
    case.tensors[base + ".weight_g_idx"] = stored(index.astype(np.int32))
  case.tensors[base + ".weight_packed"] = stored(np.stack([stream(r + half, bits) for r in codes]))
  case.tensors[base + ".weight_shape"] = stored(np.array([rows, cols], np.int64))
  case.tensors[base + ".weight_scale"] = scale_tensor
  if not sym:
    case.tensors[base + ".weight_zero_point"] = stored(
        np.stack([stream(z + half, bits) for z in zeros.T], 1))
  values = np.zeros((rows, cols), F32)
  for r in range(rows):
    for c in range(cols):
      values[r, c] = F32(codes[r, c] - zeros[r, index[c]]) * scales[r, index[c]]
  case.expect(base + ".weight", values)


UP, DOWN = "model.layers.0.mlp.up_proj", "model.layers.0.mlp.down_proj"


def pack_cases(rng):
  for bits, rows, cols, size, kind, sym, act in ((4, 11, 64, 32, "BF16", True, False),
                                                 (4, 9, 48, 16, "F16", False, False),
                                                 (3, 5, 37, 37, "F32", True, False),
                                                 (8, 6, 30, 10, "BF16", False, False),
                                                 (2, 33, 32, 16, "F16", False, False),
                                                 (5, 7, 20, 20, "F32", False, False),
                                                 (4, 8, 64, 16, "BF16", True, True)):
    strategy = {"strategy": "channel"} if size == cols else {"strategy": "group",
                                                             "group_size": size}
    weights = {"num_bits": bits, "type": "int", "symmetric": sym, **strategy,
               "actorder": "group" if act else None, "dynamic": False}
    case = compressed(f"pack {bits} bits {rows}x{cols}/{size}{'' if sym else ', zeros'}"
                      f"{', act' if act else ''}",
                      format="pack-quantized", config_groups={"group_0": group_of(weights)})
    packed(rng, case, UP, bits, rows, cols, size, kind, sym, act)
    yield case


def int_cases(rng):
  for strategy, sym in (("channel", True), ("tensor", True), ("channel", False),
                        ("tensor", False)):
    rows, cols = 7, 24
    weights = {"num_bits": 8, "type": "int", "symmetric": sym, "strategy": strategy}
    tokens = {"num_bits": 8, "type": "int", "dynamic": True, "strategy": "token"}
    case = compressed(f"int8 {strategy}{'' if sym else ', zeros'}", format="int-quantized",
                      config_groups={"group_0": {**group_of(weights), "input_activations": tokens}})
    codes = rng.integers(-128, 128, (rows, cols)).astype(np.int8)
    shape = (rows, 1) if strategy == "channel" else (1,)
    scale_tensor, scales = scales_of(rng, shape, "BF16")
    zeros = np.zeros(shape, np.int8) if sym else rng.integers(-20, 20, shape).astype(np.int8)
    case.tensors[UP + ".weight"] = stored(codes)
    case.tensors[UP + ".weight_scale"] = scale_tensor
    if not sym:
      case.tensors[UP + ".weight_zero_point"] = stored(zeros)
    case.expect(UP + ".weight", (codes.astype(F32) - zeros.astype(F32)) * scales)
    yield case


def fp8_codes(rng, shape):
  codes = rng.integers(0, 256, shape).astype(np.uint8)
  codes[codes & 127 == 127] = 0
  return codes


def float_cases(rng):
  for strategy, shape in (("tensor", (1,)), ("channel", (9, 1)), ("block", (3, 3))):
    rows, cols = 9, 20
    weights = {"num_bits": 8, "type": "float", "symmetric": True, "strategy": strategy}
    if strategy == "block":
      weights["block_structure"] = [4, 8]  # the last blocks are smaller
    case = compressed(f"fp8 {strategy}", format="float-quantized",
                      config_groups={"group_0": group_of(weights)},
                      kv_cache_scheme={"num_bits": 8, "type": "float"})
    codes = fp8_codes(rng, (rows, cols))
    scale_tensor, scales = scales_of(rng, shape, "F32")
    case.tensors[UP + ".weight"] = stored(codes, "F8_E4M3")
    case.tensors[UP + ".weight_scale"] = scale_tensor
    case.tensors["model.layers.0.self_attn.k_scale"] = stored(np.array([1], F32))
    whole = np.zeros((rows, cols), F32)
    for r in range(rows):
      for c in range(cols):
        at = {"tensor": (0,), "channel": (r, 0), "block": (r // 4, c // 8)}[strategy]
        whole[r, c] = E4M3[codes[r, c]] * scales[at]
    case.expect(UP + ".weight", whole)
    yield case
  rows, cols = 5, 64
  for name, bits, size in (("nvfp4", 4, 16), ("mxfp4", 4, 32), ("mxfp8", 8, 32)):
    weights = {"num_bits": bits, "type": "float", "symmetric": True, "group_size": size,
               "strategy": "tensor_group" if name == "nvfp4" else "group"}
    form = name + ("-pack-quantized" if bits == 4 else "-quantized")
    case = compressed(name, format=form, config_groups={"group_0": group_of(weights)})
    if bits == 4:
      codes = rng.integers(0, 16, (rows, cols)).astype(np.uint8)
      values = E2M1[codes]
      case.tensors[UP + ".weight_packed"] = stored(codes[:, ::2] | codes[:, 1::2] << 4)
    else:
      codes = fp8_codes(rng, (rows, cols))
      values = E4M3[codes]
      case.tensors[UP + ".weight"] = stored(codes, "F8_E4M3")
    if name == "nvfp4":
      scale_codes = rng.integers(1, 0x7E, (rows, cols // size)).astype(np.uint8)
      scales = E4M3[scale_codes] / F32(1234.5)
      case.tensors[UP + ".weight_scale"] = stored(scale_codes, "F8_E4M3")
      case.tensors[UP + ".weight_global_scale"] = stored(np.array([1234.5], F32))
    else:
      scale_codes = rng.integers(110, 130, (rows, cols // size)).astype(np.uint8)
      scales = np.ldexp(F32(1), scale_codes.astype(int) - 127).astype(F32)
      case.tensors[UP + ".weight_scale"] = stored(scale_codes)
    case.expect(UP + ".weight", values * np.repeat(scales, size, 1))
    yield case
  four = {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 16}
  eight = {"num_bits": 8, "type": "int", "strategy": "channel"}
  case = compressed("mixed", format="mixed-precision", config_groups={
      "group_0": group_of(eight, ["Linear"], format="pack-quantized"),
      "group_1": group_of(four, ["re:.*up_proj$"], format="pack-quantized")})
  packed(rng, case, UP, 4, 6, 32, 16)
  packed(rng, case, DOWN, 8, 4, 12, 12)
  yield case


def bnb_cases(rng):
  rows, cols = 6, 20
  case = Case("bitsandbytes 8 bits", {"quant_method": "bitsandbytes", "load_in_8bit": True,
                                      "llm_int8_threshold": 6.0})
  codes = rng.integers(-127, 128, (rows, cols)).astype(np.int8)
  most = rng.uniform(0.1, 2, rows).astype(F32)
  case.tensors[UP + ".weight"] = stored(codes)
  case.tensors[UP + ".SCB"] = stored(most)
  case.tensors[UP + ".weight_format"] = stored(np.uint8(0).reshape(()))
  case.expect(UP + ".weight", codes.astype(F32) * most[:, None] * F32(7.874015718698502e-3))
  yield case
  for kind, table, rows, cols, block, nested in (("nf4", NF4, 9, 24, 32, False),
                                                 ("fp4", FP4, 5, 27, 32, False),
                                                 ("nf4", NF4, 10, 72, 32, True)):
    case = Case(f"bitsandbytes {kind}{', nested' if nested else ''}",
                {"quant_method": "bitsandbytes", "load_in_4bit": True,
                 "bnb_4bit_quant_type": kind, "bnb_4bit_use_double_quant": nested})
    count = rows * cols
    blocks = -(-count // block)
    codes = rng.integers(0, 16, count + count % 2).astype(np.uint8)
    most = rng.uniform(0.1, 2, blocks).astype(F32)
    state = {"quant_type": kind, "blocksize": block, "dtype": "bfloat16", "shape": [rows, cols]}
    if nested:
      outer_block = 8
      levels = np.sort(rng.uniform(-1, 1, 256)).astype(F32)
      level = rng.integers(0, 256, blocks).astype(np.uint8)
      outer = rng.uniform(0.1, 2, -(-blocks // outer_block)).astype(F32)
      offset = float(F32(0.71))
      most = levels[level] * outer[np.arange(blocks) // outer_block] + F32(offset)
      state.update(nested_blocksize=outer_block, nested_dtype="float32", nested_offset=offset)
      case.tensors[UP + ".weight.absmax"] = stored(level)
      case.tensors[UP + ".weight.nested_absmax"] = stored(outer)
      case.tensors[UP + ".weight.nested_quant_map"] = stored(levels)
    else:
      case.tensors[UP + ".weight.absmax"] = stored(most)
    case.tensors[UP + ".weight"] = stored((codes[::2] << 4 | codes[1::2])[:, None])
    case.tensors[UP + ".weight.quant_map"] = stored(table)
    text = np.frombuffer(json.dumps(state).encode(), np.uint8)
    case.tensors[UP + f".weight.quant_state.bitsandbytes__{kind}"] = stored(text)
    values = table[codes[:count]] * most[np.arange(count) // block]
    case.expect(UP + ".weight", values.astype(F32).reshape(rows, cols))
    yield case


def fp8_cases(rng):
  import torch
  from transformers.integrations.finegrained_fp8 import Fp8Dequantize

  def dequantise(codes, scales):
    as_fp8 = torch.from_numpy(codes).view(torch.float8_e4m3fn)
    return Fp8Dequantize(None)._dequantize_one(as_fp8, scales, torch.float32).numpy()

  for name, shape, scale_shape, block in (("blocks", (8, 24), (2, 3), [4, 8]),
                                          ("one scale", (6, 10), (), None),
                                          ("a stack", (3, 4, 16), (3, 2, 2), [2, 8])):
    case = Case(f"fp8 {name}", {"quant_method": "fp8", "activation_scheme": "dynamic",
                                "fmt": "e4m3", "weight_block_size": block}, "transformers")
    codes = fp8_codes(rng, shape)
    scales = rng.uniform(0.01, 0.1, scale_shape).astype(F32)
    base = "model.layers.0.mlp.experts.gate_up_proj" if len(shape) == 3 else UP + ".weight"
    case.tensors[base] = stored(codes, "F8_E4M3")
    case.tensors[base + "_scale_inv"] = stored(np.asarray(scales, F32))
    case.expect(base, dequantise(codes, torch.from_numpy(np.asarray(scales))))
    yield case
  case = Case("mxfp8", {"quant_method": "mxfp8", "weight_block_size": [1, 32]}, "transformers")
  codes = fp8_codes(rng, (5, 64))
  scales = rng.integers(100, 140, (5, 2)).astype(np.uint8)
  case.tensors[UP + ".weight"] = stored(codes, "F8_E4M3")
  case.tensors[UP + ".weight_scale_inv"] = stored(scales)
  case.expect(UP + ".weight", dequantise(codes, torch.from_numpy(scales)))
  yield case
  # The last blocks are smaller, which that function does not do: weight_dequant of DeepSeek-V3
  # (https://github.com/deepseek-ai/DeepSeek-V3, inference/kernel.py).
  case = Case("fp8 partial blocks", {"quant_method": "fp8", "weight_block_size": [4, 8]})
  codes = fp8_codes(rng, (9, 20))
  scales = rng.uniform(0.01, 0.1, (3, 3)).astype(F32)
  case.tensors[UP + ".weight"] = stored(codes, "F8_E4M3")
  case.tensors[UP + ".weight_scale_inv"] = stored(scales)
  case.expect(UP + ".weight", E4M3[codes] * np.repeat(np.repeat(scales, 4, 0), 8, 1)[:9, :20])
  yield case


def mxfp4_case(rng):
  import torch
  from transformers.integrations.mxfp4 import convert_moe_packed_tensors
  case = Case("mxfp4 experts", {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]},
              "transformers")
  blocks = rng.integers(0, 256, (2, 6, 3, 16)).astype(np.uint8)
  scales = rng.integers(100, 140, (2, 6, 3)).astype(np.uint8)
  name = "model.layers.0.mlp.experts.gate_up_proj"
  case.tensors[name + "_blocks"] = stored(blocks)
  case.tensors[name + "_scales"] = stored(scales)
  values = convert_moe_packed_tensors(torch.from_numpy(blocks), torch.from_numpy(scales),
                                      dtype=torch.float32)
  # Outputs before inputs, as the file has them.
  case.expect(name, np.ascontiguousarray(values.transpose(1, 2).numpy()))
  return case


def hqq_cases(rng):
  # Packing, bits, rows, cols, group_size (None: rows or columns of the matrix), axis, float type.
  for name, bits, rows, cols, group, axis, kind in (
      ("4bit_u8", 4, 8, 48, 16, 1, "F16"), ("4bit_u8", 4, 12, 20, 8, 0, "BF16"),
      ("8bit_u8", 8, 6, 24, None, 1, "F32"), ("3bit_32", 3, 7, 32, 16, 1, "F16"),
      ("3bit_32", 3, 16, 18, 32, 0, "F16"), ("2bit_u8", 2, 8, 32, 32, 1, "BF16"),
      ("1bit_u8", 1, 16, 24, None, 0, "F16")):
    case = Case(f"hqq {name}, axis {axis}, groups of {group}",
                {"quant_method": "hqq", "skip_modules": ["lm_head"],
                 "quant_config": {"weight_quant_params": {"nbits": bits, "group_size": group},
                                  "scale_quant_params": None, "zero_quant_params": None}})
    width = group or (cols if axis else rows)
    shape = (rows * cols // width, width) if axis else (width, rows * cols // width)
    codes = rng.integers(0, 1 << bits, shape)
    grid = (shape[0], 1) if axis else (1, shape[1])
    scales, scale_values = scales_of(rng, grid, kind)
    zeros, zero_values = scales_of(rng, grid, kind, 0, 2**bits)
    in_word = 10 if bits == 3 else 8 // bits
    step = -(-shape[0] // in_word)
    words = np.zeros((step, shape[1]), np.int64)
    for r in range(shape[0]):
      words[r % step] |= codes[r] << bits * (in_word - 1 - r // step)
    words = words.astype(np.int32 if bits == 3 else np.uint8)
    as_float = name == "2bit_u8"
    case.tensors[UP + ".W_q"] = (
        stored(words.reshape(step, -1).view(np.uint16), "BF16") if as_float else stored(words))
    case.tensors[UP + ".scale"], case.tensors[UP + ".zero"] = scales, zeros
    text = lambda value: stored(np.frombuffer(value.encode(), np.uint8))
    number = lambda value: stored(np.int32(value).reshape(()))
    flag = lambda value: stored(np.uint8(value).reshape(()))
    meta = {"shape": stored(np.array([rows, cols], np.int64)), "packing": text(name),
            "axis": number(axis), "nbits": number(bits), "compute_dtype": text("torch.float16"),
            "unpack_view_dtype": text("torch.int32" if bits == 3 else "torch.uint8"),
            "channel_wise": flag(1), "optimize": flag(1), "round_zero": flag(0),
            "view_as_float": flag(as_float), "quant_scale": flag(0), "quant_zero": flag(0),
            "offload_meta": flag(0), "encoded_state_dict": flag(1), "stores_quant_config": flag(1)}
    if group:
      meta["group_size"] = flag(group) if bits == 1 or axis == 0 else number(group)
    case.tensors |= {f"{UP}.{key}": value for key, value in meta.items()}
    values = (codes.astype(F32) - zero_values) * scale_values
    case.expect(UP + ".weight", values.reshape(rows, cols))
    yield case


def bitnet_cases(rng):
  import torch
  from transformers.integrations.bitnet import WeightQuant, pack_weights, unpack_weights

  for auto in (False, True):
    keys = {"linear_class": "autobitlinear", "quantization_mode": "offline"} if auto else {}
    case = Case("bitnet" + " auto" * auto, {"quant_method": "bitnet"} | keys, "transformers")
    packed = pack_weights(torch.from_numpy(rng.integers(-1, 2, (12, 20)).astype(F32)))
    scale = F32(rng.uniform(0.5, 40.0))
    case.tensors[UP + ".weight"] = stored(packed.numpy())
    case.tensors[UP + ".weight_scale"] = stored(np.array([scale]))
    levels = unpack_weights(packed, torch.float32).numpy()
    case.expect(UP + ".weight", levels * (scale if auto else F32(1) / scale))
    yield case
  case = Case("bitnet online", {"quant_method": "bitnet", "linear_class": "autobitlinear",
                                "quantization_mode": "online"}, "transformers")
  weights = (rng.integers(-8, 9, (6, 16)) / F32(16)).astype(F32)  # sums of them are exact
  case.tensors[UP + ".weight"] = stored(weights)
  case.expect(UP + ".weight", WeightQuant.apply(torch.from_numpy(weights)).numpy())
  yield case


def make():
  rng = np.random.default_rng(20)
  cases = [gptq(rng, 4, 16, 32, 16), gptq(rng, 4, 8, 64, -1, v2=True, kind="BF16"),
           gptq(rng, 4, 8, 64, 32, act=True), gptq(rng, 2, 16, 32, 16, v2=True),
           gptq(rng, 3, 32, 32, 16), gptq(rng, 8, 4, 24, 8, act=True),
           gptq(rng, 4, 8, 64, 32, sym=True), awq(rng, 16, 32, 16), awq(rng, 8, 20, -1)]
  for source in (pack_cases, int_cases, float_cases, bnb_cases, fp8_cases):
    cases += source(rng)
  cases.append(mxfp4_case(rng))
  cases += bitnet_cases(rng)
  cases += hqq_cases(np.random.default_rng(21))
  return "[\n" + ",\n".join(json.dumps(case.json()) for case in cases) + "\n]\n"


def main():
  parser = argparse.ArgumentParser(description=__doc__,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--check", action="store_true")
  arguments = parser.parse_args()
  text = make()
  if arguments.check:
    if PATH.read_text() != text:
      raise SystemExit(f"{PATH}: differs")
    return
  PATH.write_text(text)


if __name__ == "__main__":
  main()
