#!/usr/bin/env python3
"""Writes data/gguf_blocks.json: blocks of GGUF's quantised types and their floats from gguf-py's
dequantize().

  make_gguf_blocks.py [--check]

Needs gguf and numpy. Each type has two blocks of random bytes, with scales that are normal numbers.
Both are hexadecimal, values as little-endian f32. --check compares with the existing file.
"""

import argparse
import json
import pathlib

import gguf
import numpy as np

PATH = pathlib.Path(__file__).parent / "data" / "gguf_blocks.json"
# Type -> offsets of the f16 numbers in a block.
HALVES = {"Q4_0": (0,), "Q4_1": (0, 2), "Q5_0": (0,), "Q5_1": (0, 2), "Q8_0": (0,),
          "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,), "Q2_K": (80, 82), "Q3_K": (108,),
          "IQ4_NL": (0,), "IQ4_XS": (0,), "TQ1_0": (52,), "TQ2_0": (64,), "MXFP4": ()}


def make(name, rng):
  kind = gguf.GGMLQuantizationType[name]
  _, size = gguf.GGML_QUANT_SIZES[kind]
  blocks = rng.integers(0, 256, (2, size), dtype=np.uint8)
  for row in blocks:
    for at in HALVES[name]:
      row[at:at + 2] = np.array([rng.normal() * 0.01], dtype=np.float16).view(np.uint8)
  if name == "MXFP4":
    blocks[:, 0] = (0, 120)  # powers of two; the first is subnormal
  values = gguf.dequantize(blocks, kind).astype("<f4")
  return {"type": name, "blocks": [row.tobytes().hex() for row in blocks],
          "values": [row.tobytes().hex() for row in values.reshape(2, -1)]}


def main():
  parser = argparse.ArgumentParser(description=__doc__,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--check", action="store_true")
  arguments = parser.parse_args()
  rng = np.random.default_rng(1)
  text = "[\n" + ",\n".join(json.dumps(make(name, rng)) for name in HALVES) + "\n]\n"
  if arguments.check:
    if PATH.read_text() != text:
      raise SystemExit(f"{PATH}: differs")
    return
  PATH.write_text(text)


if __name__ == "__main__":
  main()
