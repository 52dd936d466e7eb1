#!/usr/bin/env python3
"""Compares the time of a conversion with that of reading the checkpoint's bytes and writing the
bundle's.

usage: convert_time.py DIR [--weights int8] [--rounds 5] [--folder FOLDER] [--cache cold warm]
                       [--converter build/release/bin/arenite-convert ...] [--settle 3]
                       [-- ARGUMENTS ...]

Each round runs, in turn, the copy and every converter, with the checkpoint's pages dropped from the
system's cache ("cold") or in it ("warm"). The copy reads every file of DIR, then writes as many
bytes as the bundle has, both through one buffer of 4 MiB, and ends as the converter does: fsync, a
rename over the file of the run before, fsync of the folder. Every run begins after `settle`
seconds: a virtual machine gives free memory back to its host, and a run right after one that freed
memory would get new pages several times faster. Prints the least, median and largest seconds, and
the medians' ratio to the copy's. ARGUMENTS are passed to the converter, such as --no-self-test.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

from compare import cpu_name

BUFFER = bytearray(4 << 20)


def files_of(folder):
  paths = [os.path.join(folder, name) for name in sorted(os.listdir(folder))]
  return [path for path in paths if os.path.isfile(path)]


def read(path):
  fd = os.open(path, os.O_RDONLY)
  try:
    while os.readv(fd, [BUFFER]) > 0:
      pass
  finally:
    os.close(fd)


def drop(path):
  """Drops a file's pages from the cache; those not on the disk yet would stay."""
  fd = os.open(path, os.O_RDONLY)
  try:
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
  finally:
    os.close(fd)


def copy(inputs, size, output):
  for path in inputs:
    read(path)
  fd = os.open(output + ".tmp", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
  try:
    written = 0
    while written < size:
      written += os.write(fd, memoryview(BUFFER)[:min(len(BUFFER), size - written)])
    os.fsync(fd)
    os.rename(output + ".tmp", output)
  finally:
    os.close(fd)
  fd = os.open(os.path.dirname(output), os.O_RDONLY)
  try:
    os.fsync(fd)
  finally:
    os.close(fd)


def convert(converter, folder, output, weights, arguments):
  command = [converter, folder, "-o", output, "--weights", weights, "--quiet"] + arguments
  result = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
  if result.returncode != 0:
    sys.exit(f"{' '.join(command)}: {result.stderr}")


def main():
  parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
  parser.add_argument("checkpoint")
  parser.add_argument("--weights", default="int8")
  parser.add_argument("--rounds", type=int, default=5)
  parser.add_argument("--folder", help="where bundles are written, for a time [the checkpoint's]")
  parser.add_argument("--cache", nargs="+", choices=["cold", "warm"], default=["cold", "warm"])
  parser.add_argument("--converter", nargs="+", default=["build/release/bin/arenite-convert"])
  parser.add_argument("--settle", type=float, default=3.0)
  own, arguments = sys.argv[1:], []
  if "--" in own:
    own, arguments = own[:own.index("--")], own[own.index("--") + 1:]
  options = parser.parse_args(own)
  inputs = files_of(options.checkpoint)
  parent = options.folder or os.path.dirname(os.path.abspath(options.checkpoint))
  with tempfile.TemporaryDirectory(dir=parent) as folder:
    output = os.path.join(folder, "out.arn")

    def run(converter):
      if converter is None:
        copy(inputs, size, output)
      else:
        convert(converter, options.checkpoint, output, options.weights, arguments)

    convert(options.converter[0], options.checkpoint, output, options.weights, arguments)
    size = os.path.getsize(output)
    runs = {(cache, who): [] for cache in options.cache for who in [None] + options.converter}
    for _ in range(options.rounds):
      for (cache, converter), seconds in runs.items():
        for path in inputs:
          (drop if cache == "cold" else read)(path)
        time.sleep(options.settle)
        begin = time.perf_counter()
        run(converter)
        seconds.append(time.perf_counter() - begin)
  total = sum(map(os.path.getsize, inputs))
  print(f"{cpu_name()}, {options.rounds} rounds, {total / 1e6:.0f} MB to {size / 1e6:.0f} MB\n")
  print("| cache | program | least, s | median | most | median to the copy |")
  print("|---|---|--:|--:|--:|--:|")
  for (cache, converter), seconds in runs.items():
    median = statistics.median(seconds)
    ratio = median / statistics.median(runs[cache, None])
    print(f"| {cache} | {converter or 'read and write'} | {min(seconds):.2f} | {median:.2f} | "
          f"{max(seconds):.2f} | {ratio:.2f} |")


if __name__ == "__main__":
  main()
