#!/usr/bin/env python3
"""Writes data/gguf_blocks.json: blocks of GGUF's quantised types and their floats from gguf-py's
dequantize().

  make_gguf_blocks.py [--check] [--ggml libggml-base.so.0]

Needs gguf and numpy. Each type has two blocks of random bytes, with scales that are normal numbers.
Both are hexadecimal, values as little-endian f32. Types with a codebook also have a digest of the
values of many blocks, in which every index occurs: their bytes are the upper ones of
x = 6364136223846793005 x + 1442695040888963407, from x = 0, and the digest is FNV-1a over the bits
of the values, 32 at a time, where infinities and NaN count as 0. --check compares with the existing
file, --ggml the values of gguf-py with those of ggml's own functions.
"""

import argparse
import ctypes
import json
import pathlib

import gguf
import numpy as np

PATH = pathlib.Path(__file__).parent / "data" / "gguf_blocks.json"
# Type -> offsets of the f16 numbers in a block.
HALVES = {"Q4_0": (0,), "Q4_1": (0, 2), "Q5_0": (0,), "Q5_1": (0, 2), "Q8_0": (0,),
          "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,), "Q2_K": (80, 82), "Q3_K": (108,),
          "IQ4_NL": (0,), "IQ4_XS": (0,), "TQ1_0": (52,), "TQ2_0": (64,), "MXFP4": (),
          "IQ1_S": (0,), "IQ1_M": (), "IQ2_XXS": (0,), "IQ2_XS": (0,), "IQ2_S": (0,),
          "IQ3_XXS": (0,), "IQ3_S": (0,)}
# Types with a codebook, and the blocks of their digests.
MANY = {name: 2048 for name in HALVES if name[:3] in ("IQ1", "IQ2", "IQ3")}


def many_blocks(count, size):
  x, data = 0, bytearray()
  for _ in range(count * size):
    x = (x * 6364136223846793005 + 1442695040888963407) % 2**64
    data.append(x >> 56)
  return np.frombuffer(bytes(data), dtype=np.uint8).reshape(count, size)


def digest(values):
  bits = np.where(np.isfinite(values), values, np.float32(0)).astype("<f4").view(np.uint32)
  h = 0xCBF29CE484222325
  for word in bits.ravel().tolist():
    h = (h ^ word) * 0x100000001B3 % 2**64
  return f"{h:016x}"


def dequantize(blocks, kind, ggml):
  """Returns [blocks, elements]. Stops where ggml, if it is given, has other bits."""
  elements, _ = gguf.GGML_QUANT_SIZES[kind]
  with np.errstate(invalid="ignore"):
    values = gguf.dequantize(blocks, kind).astype("<f4").reshape(len(blocks), elements)
  if ggml:
    name = kind.name if kind.name[-2:] == "_K" else kind.name.lower()
    own = np.zeros(values.shape, np.float32)
    getattr(ggml, "dequantize_row_" + name.replace("Q", "q"))(
        np.ascontiguousarray(blocks).ctypes.data_as(ctypes.c_void_p),
        own.ctypes.data_as(ctypes.c_void_p), ctypes.c_int64(own.size))
    same = (own.view(np.uint32) == values.view(np.uint32)) | ~np.isfinite(values)
    if not same.all():
      raise SystemExit(f"{kind.name}: gguf-py and ggml differ in {(~same).sum()} values")
  return values


def make(name, rng, ggml):
  kind = gguf.GGMLQuantizationType[name]
  _, size = gguf.GGML_QUANT_SIZES[kind]
  blocks = rng.integers(0, 256, (2, size), dtype=np.uint8)
  for row in blocks:
    for at in HALVES[name]:
      row[at:at + 2] = np.array([rng.normal() * 0.01], dtype=np.float16).view(np.uint8)
  if name == "MXFP4":
    blocks[:, 0] = (0, 120)  # powers of two; the first is subnormal
  if name == "IQ1_M":  # a nibble of the scale in each word
    scale = np.array([0.0123, -0.004], dtype=np.float16).view(np.uint16)
    for i in range(4):
      blocks[:, 49 + 2 * i] = blocks[:, 49 + 2 * i] & 15 | (scale >> 4 * i & 15) << 4
  values = dequantize(blocks, kind, ggml)
  case = {"type": name, "blocks": [row.tobytes().hex() for row in blocks],
          "values": [row.tobytes().hex() for row in values]}
  if name in MANY:
    case["many"] = MANY[name]
    case["digest"] = digest(dequantize(many_blocks(MANY[name], size), kind, ggml))
  return case


def main():
  parser = argparse.ArgumentParser(description=__doc__,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--check", action="store_true")
  parser.add_argument("--ggml", type=ctypes.CDLL)
  arguments = parser.parse_args()
  rng = np.random.default_rng(1)
  cases = [json.dumps(make(name, rng, arguments.ggml)) for name in HALVES]
  text = "[\n" + ",\n".join(cases) + "\n]\n"
  if arguments.check:
    if PATH.read_text() != text:
      raise SystemExit(f"{PATH}: differs")
    return
  PATH.write_text(text)


if __name__ == "__main__":
  main()
