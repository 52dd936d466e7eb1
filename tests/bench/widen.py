"""Makes a model that costs more and writes almost the same as a checkpoint: the target of a draft.

  widen.py CHECKPOINT OUT [--layers N] [--ffn N] [--noise X]

Feed-forward blocks are padded with zeros to --ffn channels, and layers are added until there are
--layers, whose outputs are random with a standard deviation of --noise in their weights: 0 leaves
the text as it was. The matrices cost what others of their size do. Plain Qwen3 or Llama layers in
one bf16 file.
"""

import argparse
import json
import os
import random
import shutil
import struct
import sys

NOISE_VALUES = 1 << 16  # repeated, because there are millions


def read(path):
  with open(path, "rb") as file:
    header_bytes = struct.unpack("<Q", file.read(8))[0]
    header = json.loads(file.read(header_bytes))
    data = file.read()
  header.pop("__metadata__", None)
  return {name: (entry["shape"], data[slice(*entry["data_offsets"])])
          for name, entry in header.items() if entry["dtype"] == "BF16"}


def write(path, tensors):
  header, offset = {}, 0
  for name, (shape, data) in tensors.items():
    header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [offset, offset + len(data)]}
    offset += len(data)
  text = json.dumps(header).encode()
  text += b" " * (-len(text) % 8)
  with open(path, "wb") as file:
    file.write(struct.pack("<Q", len(text)) + text)
    for _, data in tensors.values():
      file.write(data)


def noise(shape, deviation, rng):
  n = shape[0] * shape[1]
  values = struct.pack(f"<{NOISE_VALUES}f", *(rng.gauss(0, deviation) for _ in range(NOISE_VALUES)))
  block = b"".join(values[i + 2:i + 4] for i in range(0, len(values), 4))
  return (block * (n // NOISE_VALUES + 1))[:2 * n]


def pad_rows(tensor, rows):
  (n, width), data = tensor
  return [rows, width], data + bytes(2 * width * (rows - n))


def pad_columns(tensor, columns):
  (n, width), data = tensor
  rows = (data[2 * width * i:2 * width * (i + 1)] + bytes(2 * (columns - width)) for i in range(n))
  return [n, columns], b"".join(rows)


def main():
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("checkpoint")
  parser.add_argument("out")
  parser.add_argument("--layers", type=int, default=24)
  parser.add_argument("--ffn", type=int, default=4096)
  parser.add_argument("--noise", type=float, default=0.0)
  arguments = parser.parse_args()
  rng = random.Random(1)
  with open(os.path.join(arguments.checkpoint, "config.json"), encoding="utf-8") as file:
    config = json.load(file)
  n_layers = config["num_hidden_layers"]
  tensors = read(os.path.join(arguments.checkpoint, "model.safetensors"))
  for name in list(tensors):
    if name.endswith(("gate_proj.weight", "up_proj.weight")):
      tensors[name] = pad_rows(tensors[name], arguments.ffn)
    elif name.endswith("down_proj.weight"):
      tensors[name] = pad_columns(tensors[name], arguments.ffn)
  first = {name: tensor for name, tensor in tensors.items() if ".layers.0." in name}
  for layer in range(n_layers, arguments.layers):
    for name, (shape, data) in first.items():
      if name.endswith(("o_proj.weight", "down_proj.weight")):
        data = noise(shape, arguments.noise, rng)
      elif name.endswith(("gate_proj.weight", "up_proj.weight")):
        data = noise(shape, 0.05, rng)
      tensors[name.replace(".layers.0.", f".layers.{layer}.")] = (shape, data)
  config["num_hidden_layers"] = arguments.layers
  config["intermediate_size"] = arguments.ffn
  config["layer_types"] = ["full_attention"] * arguments.layers
  os.makedirs(arguments.out, exist_ok=True)
  write(os.path.join(arguments.out, "model.safetensors"), tensors)
  with open(os.path.join(arguments.out, "config.json"), "w", encoding="utf-8") as file:
    json.dump(config, file, indent=1)
  for name in ("tokenizer.json", "tokenizer_config.json", "generation_config.json"):
    if os.path.exists(os.path.join(arguments.checkpoint, name)):
      shutil.copy(os.path.join(arguments.checkpoint, name), arguments.out)
  return 0


if __name__ == "__main__":
  sys.exit(main())
