#!/usr/bin/env python3
"""Measures several builds of Arenite and of its peers in turn, and prints the least, median and
largest speed of each and how often it ran: a table for docs/benchmarks.md.

  peers.py --pair "1B int4/Q4_0" A.arn A.gguf [--pair ...] --arenite "Arenite, GCC 12" FOLDER mapped
           --peer llama.cpp "chroot TREE" "" --peer "ik, repacked" "env PATH=BUILD:$PATH" "-rtr 1"

--arenite: a name, the folder of `arenite`, and --residency. --peer: a name, the prefix of the
peer's commands, and further options of llama-bench (with a space, or none); a peer with options has
no batch rows, since llama-batched-bench takes other options. Each round runs every program once, in
the order given, as a new process with its own warm-up. After --minutes no further round starts.
"""

import argparse
import json
import os
import shlex
import statistics
import sys
import time

from compare import ROOT, cpu_name, name_of, parse_tests
from programs import Arenite, Peer, Watch

HEADER = ("| weights | test | program | n | least | median | most | Arenite's median to it |\n"
          "|---|---|---|--:|--:|--:|--:|--:|")


def lines(weights, test, speeds):
  """The rows of one test. speeds: {program: [tokens/s]}; the first program is the reference."""
  of_first = statistics.median(next(iter(speeds.values())))
  return [
      f"| {weights} | {test} | {program} | {len(runs)} | {min(runs):.1f} | "
      f"{statistics.median(runs):.1f} | {max(runs):.1f} | "
      f"{of_first / statistics.median(runs):.2f} |"
      for program, runs in speeds.items() if runs]


def parse():
  parser = argparse.ArgumentParser(
      description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--pair", nargs=3, action="append", required=True,
                      metavar=("NAME", "BUNDLE", "GGUF"))
  parser.add_argument("--arenite", nargs=3, action="append", default=[],
                      metavar=("NAME", "FOLDER", "RESIDENCY"))
  parser.add_argument("--peer", nargs=3, action="append", default=[],
                      metavar=("NAME", "PREFIX", "OPTIONS"))
  parser.add_argument("--peer-dir", default="", metavar="DIR")
  parser.add_argument("--tests", type=parse_tests, default=parse_tests("decode:128,prefill:512"),
                      metavar="KIND:TOKENS[:DEPTH],...")
  parser.add_argument("--kv", default="int8")
  parser.add_argument("--threads", type=int, default=2)
  parser.add_argument("--rounds", type=int, default=6)
  parser.add_argument("--minutes", type=float, default=1e9)
  parser.add_argument("--max-foreign", type=float, default=0.05, metavar="CPUS")
  parser.add_argument("--attempts", type=int, default=3)
  parser.add_argument("--patience", type=int, default=20, metavar="SECONDS")
  parser.add_argument("--json", metavar="FILE", help="writes all speeds")
  return parser.parse_args()


def main():
  options = parse()
  if not options.arenite:
    options.arenite = [("Arenite", os.path.join(ROOT, "build/release/bin"), "mapped")]
  watch = Watch(options.max_foreign, options.attempts, options.patience)
  programs = {name: Arenite(folder, residency) for name, folder, residency in options.arenite}
  for name, prefix, extra in options.peer:
    programs[name] = Peer(prefix, options.peer_dir, shlex.split(extra))
  rows = [(pair, test, {name: [] for name, program in programs.items()
                        if not (test[0] == "batch" and getattr(program, "options", None))})
          for pair in options.pair for test in options.tests]
  end, disturbed = time.monotonic() + 60 * options.minutes, 0
  for number in range(options.rounds):
    for (_, bundle, gguf), test, speeds in rows:
      if time.monotonic() > end:
        continue
      for name, runs in speeds.items():
        program = programs[name]
        file, kv = (bundle, options.kv) if isinstance(program, Arenite) else (gguf, "f16")
        speed, calm = watch.undisturbed(
            lambda p=program, f=file, k=kv, t=test: p.speed(f, t, options.threads, k))
        runs.append(speed)
        disturbed += not calm
    print(f"round {number + 1} of {options.rounds}", file=sys.stderr, flush=True)
  print(f"{time.strftime('%Y-%m-%d')}, {cpu_name()}, {options.threads} threads; tokens/s; "
        f"{disturbed} runs were disturbed by other processes.\n\n{HEADER}")
  for (weights, _, _), test, speeds in rows:
    if any(speeds.values()):
      print("\n".join(lines(weights, name_of(test), speeds)))
  if options.json:
    with open(options.json, "w") as f:
      json.dump([{"weights": pair[0], "test": name_of(test), "speeds": speeds}
                 for pair, test, speeds in rows], f, indent=1)


if __name__ == "__main__":
  main()
