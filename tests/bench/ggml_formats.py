#!/usr/bin/env python3
"""Writes copies of a checkpoint whose matrices are rounded to ggml's block formats.

usage: ggml_formats.py CHECKPOINT --out DIR --text CALIBRATE.txt [--tokens N] [--types Q2_K ...]
                       [--ik-library libggml.so]

Needs numpy, torch, transformers and llama.cpp's libggml-base.so; IQ4_KS the library of
ik_llama.cpp. DIR/TYPE is the checkpoint with the values that the type gives the matrices of its
layers; DIR/TYPE/bits.txt has the bits of a weight of theirs. Blocks of 256 go through the rows as
they follow each other in memory, so that narrow matrices have the format itself and not the one
that llama-quantize falls back to. As with its --imatrix, columns count by the mean square of their
inputs, in the float model on the text. quality.py --rounded compares the copies with bundles.
"""

import argparse
import ctypes
import math
import pathlib
import shutil

import numpy as np
import safetensors.torch
import torch
import transformers

# Number of enum ggml_type, bytes of a block of 256, the library's function that reads it.
TYPES = {"Q2_K": (10, 84, "q2_K"), "Q3_K": (11, 110, "q3_K"), "IQ2_XS": (17, 74, "iq2_xs"),
         "IQ2_S": (22, 82, "iq2_s"), "IQ3_XXS": (18, 98, "iq3_xxs"), "IQ3_S": (21, 110, "iq3_s"),
         "IQ4_XS": (23, 136, "iq4_xs")}
# Bytes of a block of 256 of ik_llama.cpp's formats, which also have an f32 scale per row.
IK_TYPES = {"IQ4_KS": 136}


def moments_of(model, ids, window=512):
  """Returns the mean square of each input of each linear layer."""
  sums = {}

  def observe(name):
    def add(_, inputs, __):
      rows = inputs[0].detach().reshape(-1, inputs[0].shape[-1]).double()
      sums[name] = sums.get(name, 0) + (rows * rows).sum(0)
    return add

  for name, module in model.named_modules():
    if isinstance(module, torch.nn.Linear):
      module.register_forward_hook(observe(name))
  with torch.no_grad():
    for at in range(0, len(ids), window):
      model(ids[None, at:at + window])
  return {name: (total / len(ids)).float().numpy() for name, total in sums.items()}


def rounded(library, kind, weights, moments):
  """Returns the values that the format gives the weights, and its bytes for them."""
  rows, cols = weights.shape
  # As many rows as fill whole blocks become one.
  joined = 256 // math.gcd(cols, 256)
  if rows % joined:
    raise SystemExit(f"{rows} x {cols} is no multiple of 256 elements")
  n_rows, n_cols = rows // joined, cols * joined
  weights = np.ascontiguousarray(weights, np.float32)
  importance = np.ascontiguousarray(np.tile(moments, joined), np.float32)
  values = np.zeros((n_rows, n_cols), np.float32)
  pointer = lambda array: array.ctypes.data_as(ctypes.c_void_p)
  if kind in IK_TYPES:
    reader = "dequantize_row_" + kind.lower()
    row_bytes = 4 + n_cols // 256 * IK_TYPES[kind]
    blocks = np.zeros((n_rows, row_bytes), np.uint8)
    getattr(library, "quantize_" + kind.lower())(
        pointer(weights), pointer(blocks), ctypes.c_int64(n_rows), ctypes.c_int64(n_cols),
        pointer(importance), None)
  else:
    number, block_bytes, name = TYPES[kind]
    reader = "dequantize_row_" + name
    blocks = np.zeros((n_rows, n_cols // 256 * block_bytes), np.uint8)
    library.ggml_quantize_chunk(
        ctypes.c_int(number), pointer(weights), pointer(blocks), ctypes.c_int64(0),
        ctypes.c_int64(n_rows), ctypes.c_int64(n_cols), pointer(importance))
  for of_row, stored in zip(values, blocks):
    getattr(library, reader)(pointer(stored), pointer(of_row), ctypes.c_int64(n_cols))
  return values.reshape(rows, cols), blocks.size


def main():
  parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
  parser.add_argument("checkpoint", type=pathlib.Path)
  parser.add_argument("--out", type=pathlib.Path, required=True)
  parser.add_argument("--text", type=pathlib.Path, required=True)
  parser.add_argument("--tokens", type=int, default=16384)
  parser.add_argument("--types", nargs="*", default=list(TYPES),
                      choices=[*TYPES, *IK_TYPES])
  parser.add_argument("--library", default="libggml-base.so.0")
  parser.add_argument("--ik-library", help="libggml.so of ik_llama.cpp; adds its types")
  arguments = parser.parse_args()
  libraries = dict.fromkeys(TYPES, ctypes.CDLL(arguments.library))
  if arguments.ik_library:
    libraries.update(dict.fromkeys(IK_TYPES, ctypes.CDLL(arguments.ik_library)))
    arguments.types = list(dict.fromkeys([*arguments.types, *IK_TYPES]))
  model = transformers.AutoModelForCausalLM.from_pretrained(arguments.checkpoint,
                                                            dtype=torch.float32).eval()
  tokenizer = transformers.AutoTokenizer.from_pretrained(arguments.checkpoint)
  ids = tokenizer(arguments.text.read_text(), return_tensors="pt").input_ids[0]
  moments = moments_of(model, ids[:arguments.tokens])
  stored = safetensors.torch.load_file(arguments.checkpoint / "model.safetensors")
  for kind in arguments.types:
    folder = arguments.out / kind
    shutil.copytree(arguments.checkpoint, folder, dirs_exist_ok=True)
    tensors = {name: tensor.float() for name, tensor in stored.items()}
    stored_bytes = elements = 0
    for name, tensor in tensors.items():
      if name.endswith("_proj.weight"):
        of_inputs = moments[name.removesuffix(".weight")]
        values, n_bytes = rounded(libraries[kind], kind, tensor.numpy(), of_inputs)
        tensors[name] = torch.from_numpy(values)
        stored_bytes += n_bytes
        elements += values.size
    safetensors.torch.save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    (folder / "bits.txt").write_text(f"{8 * stored_bytes / elements}\n")


if __name__ == "__main__":
  main()
