#!/usr/bin/env python3
"""Writes data/torch/files.json: files that torch.save wrote, and the tensors in them.

  make_torch_goldens.py

Needs torch. Files are base64; tensors are hexadecimal, little-endian. A tensor whose elements do
not follow each other has no bytes. The consolidated case has Llama's parts of a checkpoint and the
tensors that transformers' convert_llama_weights_to_hf.py makes of them.
"""

import base64
import io
import json
import pathlib
from collections import OrderedDict

import torch

PATH = pathlib.Path(__file__).parent / "data" / "torch" / "files.json"
NAMES = {torch.float64: "F64", torch.float32: "F32", torch.float16: "F16",
         torch.bfloat16: "BF16", torch.int64: "I64", torch.int32: "I32", torch.int16: "I16",
         torch.int8: "I8", torch.uint8: "U8", torch.bool: "BOOL", torch.complex64: "C64",
         torch.float8_e4m3fn: "F8_E4M3", torch.float8_e5m2: "F8_E5M2", torch.uint32: "U32"}


def stored(tensor):
  dtype, shape = NAMES[tensor.dtype], list(tensor.shape)
  if not tensor.is_contiguous():
    return {"dtype": f"{dtype} with strides {list(tensor.stride())}", "shape": shape, "bytes": ""}
  data = tensor.detach().contiguous().flatten()
  return {"dtype": dtype, "shape": shape, "bytes": bytes(data.view(torch.uint8)).hex()
          if data.numel() else ""}


def saved(tensors, **options):
  file = io.BytesIO()
  torch.save(tensors, file, **options)
  return base64.b64encode(file.getvalue()).decode()


def case(name, tensors, **options):
  return {"name": name, "file": saved(tensors, **options),
          "tensors": {key: stored(value) for key, value in tensors.items()}}


def all_types():
  base = torch.arange(12, dtype=torch.float32).reshape(3, 4) - 5.5
  tensors = OrderedDict((NAMES[dtype], base.to(dtype)) for dtype in NAMES)
  tensors["tied"] = tensors["F32"]
  tensors["row"] = tensors["F32"][1]
  tensors["rows"] = tensors["BF16"][1:]
  tensors["parameter"] = torch.nn.Parameter(tensors["F16"])
  tensors["number"] = torch.tensor(3.25)
  tensors["empty"] = torch.zeros(0, 4)
  tensors["one"] = torch.arange(4.)[None].expand(1, 4)
  return tensors


def strided():
  base = torch.arange(12, dtype=torch.float32).reshape(3, 4)
  return {"transposed": base.t(), "columns": base[:, 1:3], "repeated": base[:, :1].expand(3, 4),
          "plain": base}


def module():
  torch.manual_seed(1)
  layers = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.LayerNorm(2))
  return layers.state_dict()


def consolidated():
  torch.manual_seed(2)
  layers, heads, kv_heads, d, ffn, vocab, n = 1, 4, 2, 8, 16, 24, 2
  dim = heads * d
  parts = [OrderedDict() for _ in range(n)]
  tensors = {}

  def add(name, shape, target, join, rotated_heads=0):
    whole = torch.randn(shape).to(torch.bfloat16)
    pieces = [whole] * n if join is None else torch.chunk(whole, n, dim=join)
    for part, piece in zip(parts, pieces):
      part[name] = piece.clone()
    if rotated_heads:
      dim1, dim2 = shape
      whole = whole.view(rotated_heads, dim1 // rotated_heads // 2, 2, dim2).transpose(
          1, 2).reshape(dim1, dim2)
    tensors[target] = stored(whole)

  add("tok_embeddings.weight", (vocab, dim), "model.embed_tokens.weight", 1)
  for i in range(layers):
    at, to = f"layers.{i}.", f"model.layers.{i}."
    add(at + "attention.wq.weight", (dim, dim), to + "self_attn.q_proj.weight", 0, heads)
    add(at + "attention.wk.weight", (kv_heads * d, dim), to + "self_attn.k_proj.weight", 0,
        kv_heads)
    add(at + "attention.wv.weight", (kv_heads * d, dim), to + "self_attn.v_proj.weight", 0)
    add(at + "attention.wo.weight", (dim, dim), to + "self_attn.o_proj.weight", 1)
    add(at + "feed_forward.w1.weight", (ffn, dim), to + "mlp.gate_proj.weight", 0)
    add(at + "feed_forward.w2.weight", (dim, ffn), to + "mlp.down_proj.weight", 1)
    add(at + "feed_forward.w3.weight", (ffn, dim), to + "mlp.up_proj.weight", 0)
    add(at + "attention_norm.weight", (dim,), to + "input_layernorm.weight", None)
    add(at + "ffn_norm.weight", (dim,), to + "post_attention_layernorm.weight", None)
  add("norm.weight", (dim,), "model.norm.weight", None)
  add("output.weight", (vocab, dim), "lm_head.weight", 0)
  for part in parts:
    part["rope.freqs"] = torch.zeros(d // 2)
  params = {"dim": dim, "n_layers": layers, "n_heads": heads, "n_kv_heads": kv_heads,
            "multiple_of": 8, "norm_eps": 1e-05, "vocab_size": -1}
  config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": dim,
            "intermediate_size": ffn, "num_hidden_layers": layers, "num_attention_heads": heads,
            "num_key_value_heads": kv_heads, "vocab_size": vocab, "rms_norm_eps": 1e-05,
            "rope_theta": 10000.0, "max_position_embeddings": 2048, "tie_word_embeddings": False,
            "bos_token_id": 1, "eos_token_id": 2}
  return {"params": params, "config": config, "parts": [saved(part) for part in parts],
          "tensors": tensors}


def main():
  cases = [case("zip", all_types()), case("zip, strided", strided()),
           case("zip, state_dict of a module", module()),
           case("before 1.6", all_types(), _use_new_zipfile_serialization=False),
           case("before 1.6, state_dict of a module", module(),
                _use_new_zipfile_serialization=False)]
  data = {"torch": torch.__version__, "cases": cases, "consolidated": consolidated()}
  PATH.parent.mkdir(exist_ok=True)
  PATH.write_text(json.dumps(data, indent=1) + "\n")


if __name__ == "__main__":
  main()
