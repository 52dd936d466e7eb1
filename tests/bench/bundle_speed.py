#!/usr/bin/env python3
"""Measures bundles of one model in turn: decode and prefill, and how they compare with the first.

usage: bundle_speed.py BUNDLE ... [--rounds 5] [--threads 1 2] [--prefill 512] [--decode 64]
                       [--bin build/release/bin]

Each round runs every bundle once per test and number of threads, each run a new process with its
own warm-up. Prints the least, median and largest tokens/s, and the median's ratio to the first
bundle's.
"""

import argparse
import os
import statistics

from compare import cpu_name
from programs import Arenite


def main():
  parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
  parser.add_argument("bundles", nargs="+")
  parser.add_argument("--rounds", type=int, default=5)
  parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
  parser.add_argument("--prefill", type=int, default=512)
  parser.add_argument("--decode", type=int, default=64)
  parser.add_argument("--bin", default="build/release/bin")
  arguments = parser.parse_args()
  arenite = Arenite(arguments.bin)
  tests = [("decode", arguments.decode, 0), ("prefill", arguments.prefill, 0)]
  runs = {(test, threads): {bundle: [] for bundle in arguments.bundles}
          for test in tests for threads in arguments.threads}
  for _ in range(arguments.rounds):
    for (test, threads), speeds in runs.items():
      for bundle, of_bundle in speeds.items():
        of_bundle.append(arenite.speed(bundle, test, threads, "int8"))
  print(f"{cpu_name()}, {arguments.rounds} rounds, tokens/s\n")
  print("| weights | MB | test | threads | least | median | most | median to the first |")
  print("|---|--:|---|--:|--:|--:|--:|--:|")
  for ((kind, tokens, _), threads), speeds in runs.items():
    first = statistics.median(speeds[arguments.bundles[0]])
    for bundle, of_bundle in speeds.items():
      name = os.path.splitext(os.path.basename(bundle))[0]
      median = statistics.median(of_bundle)
      print(f"| {name} | {os.path.getsize(bundle) / 1e6:.0f} | {kind} {tokens} | {threads} | "
            f"{min(of_bundle):.1f} | {median:.1f} | {max(of_bundle):.1f} | {median / first:.2f} |")


if __name__ == "__main__":
  main()
