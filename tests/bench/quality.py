#!/usr/bin/env python3
"""Measures how far quantised weights are from float ones: a table for each text.

usage: quality.py CHECKPOINT --text HELD_OUT.txt ... [--weights T ...] [--calibrate TEXT]
                  [--bits [T:]B ...] [--gguf F.gguf ...] [--rounded DIR ...] [--speed ROUNDS]

Converts the checkpoint to f32, int8 and int4 (--weights), with --calibrate also calibrated, and
compares each with the f32 bundle over the text (arenite eval --compare), KV in f32. A GGUF file of
the peer is first converted to an f32 bundle, so its row has only the cost of rounding the weights.
So has that of a folder of ggml_formats.py, whose embedding gets our int8. Arenite's integer rows
have the whole cost, with activations quantised to int8. Bits per weight count the matrices' values
and scales for both; those of the layers are known where embedding and head are int8. --speed also
runs Arenite's integer rows in turn, so many times, and gives the medians: generated tokens/s, and
those of a prompt of 256, on --threads threads.
"""

import argparse
import json
import os
import statistics
import struct
import subprocess
import sys
import tempfile

from programs import Arenite

# Bytes and elements per block, by GGUF type number.
GGUF_BLOCKS = {0: (4, 1), 1: (2, 1), 30: (2, 1), 2: (18, 32), 3: (20, 32), 6: (22, 32),
               7: (24, 32), 8: (34, 32), 10: (84, 256), 11: (110, 256), 12: (144, 256),
               13: (176, 256), 14: (210, 256)}
# Bytes of a metadata value; 8 is a string and 9 an array.
GGUF_VALUES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}


class Reader:
  """Reads the head of a GGUF file."""

  def __init__(self, path):
    self.file = open(path, "rb")

  def number(self, kind):
    return struct.unpack("<" + kind, self.file.read(struct.calcsize(kind)))[0]

  def string(self):
    return self.file.read(self.number("Q")).decode("utf-8", "replace")

  def skip_value(self, kind):
    if kind == 8:
      self.string()
    elif kind == 9:
      inner, count = self.number("I"), self.number("Q")
      for _ in range(count):
        self.skip_value(inner)
    else:
      self.file.seek(GGUF_VALUES[kind], os.SEEK_CUR)


def gguf_bits(path):
  """Returns the bits per weight of the file's matrices."""
  reader = Reader(path)
  if reader.file.read(4) != b"GGUF":
    sys.exit(f"{path}: not a GGUF file")
  reader.number("I")
  tensors, values = reader.number("Q"), reader.number("Q")
  for _ in range(values):
    reader.string()
    reader.skip_value(reader.number("I"))
  stored = elements = 0
  for _ in range(tensors):
    reader.string()
    shape = [reader.number("Q") for _ in range(reader.number("I"))]
    kind = reader.number("I")
    reader.number("Q")
    if len(shape) < 2:
      continue
    count = 1
    for size in shape:
      count *= size
    block_bytes, block = GGUF_BLOCKS[kind]
    stored += count // block * block_bytes
    elements += count
  return 8 * stored / elements


def matrices_of(folder):
  """Returns the shapes of the layers' matrices, and those of the embedding and the head."""
  with open(os.path.join(folder, "model.safetensors"), "rb") as file:
    head = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
  layers, tables = [], []
  for name, tensor in head.items():
    if name != "__metadata__" and len(tensor["shape"]) == 2:
      is_table = name.endswith(("embed_tokens.weight", "lm_head.weight"))
      (tables if is_table else layers).append(tensor["shape"])
  return layers, tables


def elements_of(shapes):
  return sum(rows * cols for rows, cols in shapes)


def table_bits(shapes):
  """Returns the bits of int8 matrices."""
  return sum(rows * (8 * cols + 32) for rows, cols in shapes)


def bits_of_layers(folder, bits):
  """Returns the bits per weight of the layers' matrices, from those of all of them."""
  layers, tables = matrices_of(folder)
  stored = bits * elements_of(layers + tables) - table_bits(tables)
  return stored / elements_of(layers)


def rounded_bits(folder):
  """Returns the bits per weight of a copy that ggml_formats.py has written."""
  with open(os.path.join(folder, "bits.txt")) as file:
    of_type = float(file.read())
  layers, tables = matrices_of(folder)
  stored = elements_of(layers) * of_type + table_bits(tables)
  return stored / elements_of(layers + tables)


def measure_speeds(folder, rows, rounds, threads):
  """Returns median tokens/s of prefill and decode by bundle, for rows with integer activations."""
  arenite = Arenite(folder)
  tests = (("decode", 128, 0), ("prefill", 256, 0))
  runs = {bundle: ([], []) for _, bundle, bits in rows[1:] if bits is None}
  for _ in range(rounds):
    for bundle, of_tests in runs.items():
      for speeds, test in zip(of_tests, tests):
        speeds.append(arenite.speed(bundle, test, threads, "int8"))
  return {bundle: [statistics.median(speeds) for speeds in of_tests]
          for bundle, of_tests in runs.items()} if rounds else {}


def main():
  parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
  parser.add_argument("checkpoint")
  parser.add_argument("--text", required=True, nargs="+", help="what the models are judged by")
  parser.add_argument("--calibrate", help="another text, to calibrate with")
  parser.add_argument("--calibrate-tokens", default="16384")
  parser.add_argument("--weights", nargs="*", default=["int8", "int4"])
  parser.add_argument("--rounded", nargs="*", default=[], help="folders of ggml_formats.py")
  parser.add_argument("--bits", nargs="*", default=[], help="calibrated bundles of so many bits")
  parser.add_argument("--gguf", nargs="*", default=[], help="the peer's files of this checkpoint")
  parser.add_argument("--speed", type=int, default=0, metavar="ROUNDS")
  parser.add_argument("--threads", type=int, default=1)
  parser.add_argument("--bin", default="build/release/bin")
  arguments = parser.parse_args()
  convert, tool = (os.path.join(arguments.bin, name) for name in ("arenite-convert", "arenite"))

  with tempfile.TemporaryDirectory() as folder:
    rows = []  # label, bundle, bits per weight if not the bundle's

    def make(label, source, options, bits=None):
      bundle = os.path.join(folder, f"{len(rows)}.arn")
      subprocess.run([convert, source, "-o", bundle, "-q", *options], check=True)
      rows.append((label, bundle, bits))

    make("f32", arguments.checkpoint, ["--weights", "f32"])
    kinds = [("", [])]
    if arguments.calibrate:
      kinds.append((", calibrated", ["--calibrate", arguments.calibrate, "--calibrate-tokens",
                                     arguments.calibrate_tokens]))
    for weights in arguments.weights:
      for label, options in kinds:
        make(weights + label, arguments.checkpoint, ["--weights", weights, *options])
    for spec in arguments.bits:
      least, bits = spec.split(":") if ":" in spec else ("int4", spec)
      make(f"{least}, calibrated, --bits {bits}", arguments.checkpoint,
           ["--weights", least, *kinds[-1][1], "--bits", bits])
    for path in arguments.gguf:
      make(os.path.basename(path), path, ["--weights", "f32"], gguf_bits(path))

    for path in arguments.rounded:
      make(os.path.basename(path), path,
           ["--weights", "f32", "--embedding", "int8", "--head", "int8"], rounded_bits(path))

    speeds = measure_speeds(arguments.bin, rows, arguments.speed, arguments.threads)
    for text in arguments.text:
      print_table(tool, text, rows, arguments.checkpoint, speeds)


def print_table(tool, text, rows, checkpoint, speeds):
  """rows: label, bundle, bits per weight if not the bundle's; the first is the reference."""
  command = [tool, "eval", rows[0][1], "--file", text, "--kv", "f32", "--json"]
  for _, bundle, _ in rows[1:]:
    command += ["--compare", bundle]
  table = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
  print(f"{table['tokens']} tokens of {os.path.basename(text)} in windows of {table['window']}\n")
  columns = ["weights", "bits of the layers", "of the model", "KL", "99 %", "perplexity",
             "same top"]
  if speeds:
    columns += ["decode", "prefill"]
  print(f"| {' | '.join(columns)} |\n|---{'|--:' * (len(columns) - 1)}|")
  is_known = os.path.exists(os.path.join(checkpoint, "model.safetensors"))
  known = [bits if bits is not None else row["bits_per_weight"]
           for (_, _, bits), row in zip(rows, table["bundles"])]
  for shown, (label, bundle, _), row in sorted(zip(known, rows, table["bundles"]),
                                               key=lambda line: -line[0]):
    of_layers = ""
    if "kl" in row and not label.endswith(".gguf") and is_known:
      of_layers = f"{bits_of_layers(checkpoint, shown):.2f}"
    against = (f"{row['kl']:.5f} | {row['kl_p99']:.2f} | {row['perplexity']:.4f} | "
               f"{100 * row['same_top']:.2f} %"
               if "kl" in row else f"| | {row['perplexity']:.4f} |")
    cells = [label, of_layers, f"{shown:.3f}", against]
    if speeds:
      cells += [f"{speed:.0f}" for speed in speeds.get(bundle, [])] or ["", ""]
    print(f"| {' | '.join(cells)} |")
  print()


if __name__ == "__main__":
  main()
