#!/usr/bin/env python3
"""Measures Arenite against llama.cpp on this machine. The two run alternately, each time in a new
process with its own warm-up; a row is the median of the rounds.

  compare.py --table DIR [--peer "chroot TREE" --peer-dir /mnt/dir]
      The whole table of docs/benchmarks.md: prefill 512, decode 128, and decode 128 at depth 8192
      with an int8 cache against the faster of the peer's f16 and q8_0 caches with flash attention.
      Makes the files missing in DIR first: checkpoints (--reference), bundles, GGUF files.
  compare.py --pair int8/Q8_0 A.arn A.gguf [--pair ...] [--tests prefill:512,decode:128:2048]
      The same for other files.
  --tests batch:64:8 decodes 64 tokens in a batch of 8 sequences; tokens/s count all sequences.
  --cold-start      instead: time from process start to the first token, and private dirty memory
  --oversubscribe   instead: slowdown of both while two other processes compute all the time
  --json FILE       writes the rows; --update-docs: puts them into docs/benchmarks.md and .svg
  --from-json FILE  measures nothing, reads the rows from FILE

--peer is a prefix of the peer's commands (llama-bench, llama-completion, llama-quantize, python3):
"chroot TREE", or "env PATH=BUILD:$PATH" for a local build; --peer-dir is the path of the models'
folder for the peer. A run waits for an idle machine. A run is repeated if other processes took more
than --max-foreign of a CPU during it; a row without an undisturbed run gets a *.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time

import cold_start
import report
from models import GEOMETRIES, Models
from programs import Arenite, Peer, Watch, run

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
TESTS = (("prefill", 512, 0), ("decode", 128, 0), ("decode", 128, 8192))
# Geometry, our weights and the peer's, and the target ratios in the order of TESTS.
TABLE = (
    ("smol135", "int8", "Q8_0", (4.0, 1.7, 4.0)),
    ("smol135", "int4", "Q4_0", (3.0, 1.7, 4.0)),
    ("llama1b", "int8", "Q8_0", (4.0, 1.15, 2.0)),
    ("llama1b", "int4", "Q4_0", (2.7, 1.3, 2.5)),
    ("smol135", "bf16", "F16", (1.5, 1.3, 3.0)),
)


def name_of(test):
  kind, tokens, depth = test
  if kind == "batch":
    return f"decode {tokens}, {depth} sequence" + ("s" if depth != 1 else "")
  return f"{kind} {tokens}" + (f" @ {depth}" if depth else "")


def parse_tests(text):
  """ "prefill:512,decode:128:2048,batch:64:8" """
  tests = []
  for word in text.split(","):
    kind, tokens, *depth = word.split(":")
    if kind not in ("prefill", "decode", "batch") or (kind == "batch" and not depth):
      raise argparse.ArgumentTypeError(
          f"{word}: expected prefill:N[:DEPTH], decode:N[:DEPTH] or batch:N:SEQUENCES")
    tests.append((kind, int(tokens), int(depth[0]) if depth else 0))
  return tests


def parse_factor(text):
  """"Q8_0:prefill=2" or "decode=1.1" -> (weights or "", kind, factor)."""
  where, factor = text.split("=")
  weights, _, kind = where.rpartition(":")
  return weights, kind, float(factor)


def cpu_name():
  try:
    with open("/proc/cpuinfo") as info:
      for line in info:
        if line.startswith(("model name", "Model")):
          return line.split(":", 1)[1].strip()
  except OSError:
    pass
  return platform.machine()


class Comparison:
  def __init__(self, options):
    self.options = options
    self.arenite = Arenite(options.arenite, options.residency)
    self.peer = Peer(options.peer, options.peer_dir)
    self.watch = Watch(options.max_foreign, options.attempts, options.patience)

  def pairs(self):
    """Returns (geometry, weights of both, bundle, gguf, targets by test) for each row's models."""
    options = self.options
    if not options.table:
      return [("", name, bundle, gguf, {}) for name, bundle, gguf in options.pair]
    models = Models(options.table, options.reference, self.arenite, self.peer)
    found = []
    for geometry, ours, theirs, targets in TABLE:
      name = f"{ours}/{theirs}"
      row = f"{GEOMETRIES[geometry]} {name}"
      if options.only and not any(word in row for word in options.only):
        continue
      found.append((GEOMETRIES[geometry], name, models.bundle(geometry, ours),
                    models.gguf(geometry, theirs), dict(zip(TESTS, targets))))
    return found

  def factor(self, weights, test):
    """Returns the stated speed-up of a native build of the peer."""
    for of, kind, factor in self.options.peer_factor:
      if kind == test[0] and of in ("", weights.split("/")[-1]):
        return factor
    return 1.0

  def row(self, geometry, weights, bundle, gguf, test, target):
    options = self.options
    ours, calm = [], True
    depth = 0 if test[0] == "batch" else test[2]
    theirs = {kv: [] for kv in (options.peer_kv if depth > 0 else ["f16"])}
    for _ in range(options.rounds):
      speed, was_calm = self.watch.undisturbed(
          lambda: self.arenite.speed(bundle, test, options.threads, options.kv))
      ours.append(speed)
      calm = calm and was_calm
      for kv, speeds in theirs.items():
        speed, was_calm = self.watch.undisturbed(
            lambda: self.peer.speed(gguf, test, options.threads, kv))
        speeds.append(speed)
        calm = calm and was_calm
      # One round identifies the slower of the peer's caches.
      theirs = dict([max(theirs.items(), key=lambda item: statistics.median(item[1]))])
    (kv, speeds), = theirs.items()
    a, b = statistics.median(ours), statistics.median(speeds)
    work = self.arenite.work(bundle, test, options.threads, options.kv)
    return {"geometry": geometry, "weights": weights, "test": name_of(test), "depth": depth,
            "kv": f"{options.kv}/{kv}", "ours": a, "theirs": b, "ratio": a / b,
            "all_ours": ours, "all_theirs": speeds, "target": target, "undisturbed": calm,
            "peer_factor": self.factor(weights, test), "work": work}

  def measure(self):
    options, pairs = self.options, self.pairs()
    self.arenite.bench(pairs[0][2], ("prefill", 0, 0), options.threads, options.kv,
                       ["--limits"])
    version = subprocess.run(self.peer.command("llama-bench", "--version"), capture_output=True,
                             text=True)
    version = (version.stderr + version.stdout).strip().splitlines()
    # Its second version line is the compiler's.
    version = [line for line in version if line.startswith(("version", "built with"))]
    version = [", ".join(version) or "unknown version"]
    result = {"date": time.strftime("%Y-%m-%d"), "cpu": cpu_name(), "threads": options.threads,
              "rounds": options.rounds, "residency": options.residency,
              "limits": self.arenite.limits,
              "peer": options.peer_name or version[0],
              "peer_factors": [f"{(w + ' ') if w else ''}{k} x{f:g}"
                               for w, k, f in options.peer_factor],
              "rows": []}
    print(report.HEADER, flush=True)
    for geometry, weights, bundle, gguf, targets in pairs:
      for test in options.tests:
        row = self.row(geometry, weights, bundle, gguf, test, targets.get(test))
        result["rows"].append(row)
        print(report.line(row, result["limits"]), flush=True)
    return result

  def cold_start(self):
    pairs = [(f"{geometry} {weights}".strip(), bundle, gguf)
             for geometry, weights, bundle, gguf, _ in self.pairs()]
    print(cold_start.table(self.arenite, self.peer, pairs, self.options.threads,
                           self.options.rounds))

  def oversubscribe(self):
    """Runs two processes that compute all the time, next to as many threads as options specify."""
    options = self.options
    print("| geometry | weights | test | | alone, tokens/s | beside two loops | times slower |")
    print("|---|---|---|---|--:|--:|--:|", flush=True)
    for geometry, weights, bundle, gguf, _ in self.pairs():
      for test in [t for t in options.tests if t[2] == 0]:
        for program, file, kv in ((self.arenite, bundle, options.kv), (self.peer, gguf, "f16")):
          def speed():
            return program.speed(file, test, options.threads, kv)
          alone = statistics.median(
              self.watch.undisturbed(speed)[0] for _ in range(options.rounds))
          loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
          try:
            beside = statistics.median(speed() for _ in range(options.rounds))
          finally:
            for loop in loops:
              loop.kill()
              loop.wait()
          print(f"| {geometry} | {weights} | {name_of(test)} | {program.name} | {alone:.1f} | "
                f"{beside:.1f} | {alone / beside:.2f} |", flush=True)


def parse():
  parser = argparse.ArgumentParser(
      description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  what = parser.add_mutually_exclusive_group(required=True)
  what.add_argument("--table", metavar="DIR")
  what.add_argument("--pair", nargs=3, action="append", metavar=("NAME", "BUNDLE", "GGUF"))
  what.add_argument("--from-json", nargs="+", metavar="FILE")
  parser.add_argument("--cold-start", action="store_true")
  parser.add_argument("--oversubscribe", action="store_true")
  parser.add_argument("--json", metavar="FILE")
  parser.add_argument("--update-docs", action="store_true")
  parser.add_argument("--arenite", default=os.path.join(ROOT, "build/release/bin"),
                      help="the folder of arenite and arenite-convert")
  parser.add_argument("--reference", default=os.path.join(ROOT, "../shared/reference"),
                      help="the folder of make_big.py and convert_gguf.py")
  parser.add_argument("--peer", default="", metavar="PREFIX")
  parser.add_argument("--peer-dir", default="", metavar="DIR")
  parser.add_argument("--peer-name", default="", help="how the report calls the peer's build")
  parser.add_argument("--peer-factor", type=parse_factor, action="append", default=[],
                      metavar="[WEIGHTS:]KIND=F",
                      help="a column for a peer that is so much faster: Q8_0:prefill=2, decode=1.1")
  parser.add_argument("--peer-kv", default="f16,q8_0", type=lambda text: text.split(","),
                      help="its types of keys and values at a depth, of which the faster counts")
  parser.add_argument("--tests", type=parse_tests, default=list(TESTS),
                      metavar="KIND:TOKENS[:DEPTH],...")
  parser.add_argument("--only", action="append", default=[],
                      help="rows of the table with this in their name: 135M, int4, 'bf16/F16'")
  parser.add_argument("--kv", default="int8", help="our KV type")
  parser.add_argument("--residency", default="mapped", help="where our bundles are")
  parser.add_argument("--threads", type=int, default=2)
  parser.add_argument("--rounds", type=int, default=3)
  parser.add_argument("--max-foreign", type=float, default=0.05, metavar="CPUS")
  parser.add_argument("--attempts", type=int, default=5, help="at an undisturbed run")
  parser.add_argument("--patience", type=int, default=60, metavar="SECONDS",
                      help="how long to wait for an idle machine before each")
  return parser.parse_args()


def main():
  options = parse()
  comparison = Comparison(options)
  if options.cold_start:
    comparison.cold_start()
    return
  if options.oversubscribe:
    comparison.oversubscribe()
    return
  if options.from_json:
    results = []
    for path in options.from_json:
      with open(path) as f:
        results.append(json.load(f))
    result = report.merged(results)
    print(report.markdown(result))
  else:
    result = comparison.measure()
  if options.json:
    with open(options.json, "w") as f:
      json.dump(result, f, indent=1)
      f.write("\n")
  if options.update_docs:
    docs = os.path.join(ROOT, "docs")
    report.update_docs(result, os.path.join(docs, "benchmarks.md"),
                       os.path.join(docs, "benchmarks.svg"))


if __name__ == "__main__":
  main()
