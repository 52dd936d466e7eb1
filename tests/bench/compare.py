#!/usr/bin/env python3
"""Measures Arenite beside llama.cpp's llama-bench, in turn, and prints a Markdown table.

  compare.py --pair int8/Q8_0 smol-int8.arn smol-q8_0.gguf [--pair NAME BUNDLE GGUF ...]
             [--peer "llama-bench"] [--threads 1,2] [--prefill 512] [--decode 128]
             [--depth 0,2048] [--rounds 3] [--kv int8] [--peer-options "-ctk q8_0 -ctv q8_0 -fa 1"]

For each pair, thread count and depth the two programs run alternately, --rounds times each, every
time as a new process, with one warm-up run of their own; a row is the median of the rounds. A run
begins when the machine is idle; one during which other processes took more than --max-foreign of a
CPU is thrown away and repeated. A row that could not be measured undisturbed is marked with *.
--peer is a command: "chroot DIR llama-bench" where it lives in a tree of its own (the GGUF's path
is then the one inside).
"""

import argparse
import json
import os
import platform
import resource
import shlex
import statistics
import subprocess
import sys
import time


def busy_seconds():
  """CPU time that all processes together have taken since the start of the machine."""
  with open("/proc/stat") as stat:
    user, nice, system, _, _, irq, softirq, steal = map(int, stat.readline().split()[1:9])
  return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def own_seconds():
  usage = resource.getrusage(resource.RUSAGE_CHILDREN)
  return usage.ru_utime + usage.ru_stime


def wait_for_idle(options):
  """Returns when a second passes without other work, or after --patience of them."""
  for _ in range(options.patience):
    busy = busy_seconds()
    time.sleep(1)
    if busy_seconds() - busy <= options.max_foreign:
      return


def undisturbed(measure, options):
  """The result of measure(), and whether the machine was ours meanwhile."""
  for _ in range(options.attempts):
    wait_for_idle(options)
    busy, own, start = busy_seconds(), own_seconds(), time.monotonic()
    result = measure()
    foreign = (busy_seconds() - busy) - (own_seconds() - own)
    if foreign <= options.max_foreign * (time.monotonic() - start):
      return result, True
  return result, False


def run(command):
  result = subprocess.run(command, capture_output=True, text=True)
  if result.returncode != 0:
    reason = result.stderr.strip()[-500:]
    sys.exit(f"{shlex.join(command)}: exit code {result.returncode}: {reason}")
  return result.stdout


def measure_arenite(options, bundle, threads, depth):
  """tokens/s of ("prefill", "decode")."""
  report = json.loads(run([
      options.arenite, "bench", bundle, "-p", str(options.prefill), "-n", str(options.decode), "-d",
      str(depth), "-t", str(threads), "-r", "1", "--kv", options.kv, "--json"]))
  speeds = {r["test"]: r["tokens_per_s"] for r in report["results"]}
  return speeds["prefill"], speeds["decode"]


def measure_peer(options, model, threads, depth):
  rows = json.loads(run(shlex.split(options.peer) + [
      "-m", model, "-p", str(options.prefill), "-n", str(options.decode), "-d", str(depth), "-t",
      str(threads), "-r", "1", "-o", "json"] + shlex.split(options.peer_options)))
  prefill = [r["avg_ts"] for r in rows if r["n_prompt"] > 0 and r["n_gen"] == 0]
  decode = [r["avg_ts"] for r in rows if r["n_gen"] > 0 and r["n_prompt"] == 0]
  return prefill[0], decode[0]


def cpu_name():
  try:
    with open("/proc/cpuinfo") as info:
      for line in info:
        if line.startswith(("model name", "Model")):
          return line.split(":", 1)[1].strip()
  except OSError:
    pass
  return platform.machine()


def main():
  parser = argparse.ArgumentParser(
      description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--pair", nargs=3, action="append", required=True,
                      metavar=("NAME", "BUNDLE", "GGUF"))
  parser.add_argument("--arenite", default="build/release/bin/arenite")
  parser.add_argument("--peer", default="llama-bench")
  parser.add_argument("--peer-options", default="")
  parser.add_argument("--threads", default="1,2")
  parser.add_argument("--depth", default="0,2048")
  parser.add_argument("--prefill", type=int, default=512)
  parser.add_argument("--decode", type=int, default=128)
  parser.add_argument("--rounds", type=int, default=3)
  parser.add_argument("--kv", default="int8")
  parser.add_argument("--max-foreign", type=float, default=0.05, metavar="CPUS")
  parser.add_argument("--attempts", type=int, default=5, help="at an undisturbed run")
  parser.add_argument("--patience", type=int, default=60, metavar="SECONDS",
                      help="how long to wait for an idle machine before each")
  options = parser.parse_args()

  print(f"{cpu_name()}, {os.cpu_count()} CPUs; {time.strftime('%Y-%m-%d')}; KV {options.kv}"
        + (f"; peer: {options.peer_options}" if options.peer_options else ""))
  print()
  print("| weights | threads | test | Arenite tokens/s | llama.cpp tokens/s | ratio |")
  print("|---|--:|---|--:|--:|--:|", flush=True)
  for name, bundle, model in options.pair:
    for threads in options.threads.split(","):
      for depth in options.depth.split(","):
        ours, theirs, calm = [], [], True
        for _ in range(options.rounds):
          for speeds, measure, file in ((ours, measure_arenite, bundle),
                                        (theirs, measure_peer, model)):
            result, was_calm = undisturbed(lambda: measure(options, file, threads, depth), options)
            speeds.append(result)
            calm = calm and was_calm
        for i, test in enumerate((f"prefill {options.prefill}", f"decode {options.decode}")):
          a = statistics.median(speeds[i] for speeds in ours)
          b = statistics.median(speeds[i] for speeds in theirs)
          ratio = f"{a / b:.2f}" + ("" if calm else " *")
          print(f"| {name} | {threads} | {test} @ {depth} | {a:.1f} | {b:.1f} | {ratio} |",
                flush=True)


if __name__ == "__main__":
  main()
