#!/usr/bin/env python3
"""Runs every kind of trust test at one of three lengths and prints a table: kind, count, failures.

usage: trust.py ci|nightly|long   (tests/trust.sh builds what it needs)
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE, COVERAGE = ROOT / "tests/trust", ROOT / "tests/coverage"
BUILD = ROOT / "build/release"
BIN, TESTS = BUILD / "bin", BUILD / "bin/tests"
SHIM, LOG = BUILD / "lib/libarn_fault_shim.so", BUILD / "lib/libarn_disk_log.so"
TOOLS = [BIN / "arenite", BIN / "arenite-convert"]
CHECKPOINT = ROOT / "models/fable/fable-2m"
FUZZERS, CORPUS = ROOT / "build/fuzz/bin", ROOT / "tests/fuzz/corpus"
LENGTHS = ["ci", "nightly", "long"]
COMMANDS = ("run,run_save,run_schema,tokenize,inspect,chat,embed,transcribe,convert,"
            "convert_signed,convert_text")


def script(name, *arguments):
  return [sys.executable, "-B", HERE / name, *arguments]


def failures(only, most):
  return script("failures.py", TESTS / "trust_subject", SHIM, *TOOLS, "--only", only, "--most",
                most)


def libfuzzer(program, seconds, folder):
  """Returns a command that begins with the target's seeds and kept inputs. What it finds goes to
  the folder, not among those that are kept."""
  name = program.name.removeprefix("fuzz_")
  found = pathlib.Path(folder, name)
  found.mkdir()
  return [program, f"-max_total_time={seconds}", "-print_final_stats=1", "-verbosity=0", found,
          CORPUS / name]


def kinds(length):
  """Yields name, command and environment."""
  def by(*values):
    return values[LENGTHS.index(length)]
  yield "failing calls: library", failures("subject", by(2, 0, 0)), {}
  yield "failing calls: programs", failures(COMMANDS, by(2, 40, 1000)), {}
  yield "failing calls: server", failures("serve", by(2, 60, 0)), {}
  for name in ("memory_failing_os_test", "memory_failing_files_test"):
    yield f"failing calls: {name}", [TESTS / name], {}
  yield "loss of power", script("power_loss.py", LOG, *TOOLS, "--most", by(2, 0, 0)), {}
  yield "known weaknesses", [TESTS / "trust_cve_test"], {}
  yield ("requests to the server",
         [sys.executable, "-B", ROOT / "tests/serve/serve_test.py", *TOOLS, CHECKPOINT], {})
  yield "sandbox: library", [TESTS / "trust_sandbox_test"], {}
  yield ("sandbox: programs",
         script("sandbox_profiles_test.py", TESTS / "trust_confined", *TOOLS), {})
  yield "soak", [TESTS / "trust_soak_test"], {"ARN_SOAK_SECONDS": by(30, 900, 3600),
                                              "ARN_SOAK_SEED": int(time.time()) % 1000000}
  for name in ("fuzz_test", "state_fuzz_test", "text_fuzz_test", "constraint_fuzz_test"):
    yield f"damaged input: {name}", [TESTS / name], {}
  yield ("damaged input: fuzz targets", [TESTS / "fuzz_corpus_test"],
         {"ARN_FUZZ_TIMES": by(1, 50, 1000)})
  if shutil.which("valgrind"):
    yield ("uninitialised memory: fuzz targets",
           [ROOT / "tests/fuzz/memcheck.sh", TESTS / "fuzz_corpus_test"],
           {"ARN_FUZZ_TIMES": by(0, 1, 20)})
  else:
    print("valgrind is not installed: uninitialised memory is not looked for", flush=True)
  if length != "ci":
    with tempfile.TemporaryDirectory() as folder:
      for program in sorted(FUZZERS.glob("fuzz_*")):
        yield f"libFuzzer: {program.name}", libfuzzer(program, by(0, 60, 1800), folder), {}
  yield "dependencies: known", script("dep_cves.py"), {}
  if length != "ci":
    for module in ("bundle", "GGUF", "JSON", "planner", "safetensors", "schema", "state",
                   "template"):
      yield (f"planted mistakes: {module}",
             [sys.executable, "-B", COVERAGE / "mutate.py", module, "--sample", by(0, 10, 200),
              "--seed", int(time.time()) % 1000000], {})
  if length == "long":
    yield "branches", [sys.executable, "-B", COVERAGE / "coverage.py"], {}
    yield "dependencies: two builds", [HERE / "reproducible.sh"], {}


def number(pattern, text):
  found = re.findall(pattern, text, re.MULTILINE)
  return int(found[-1]) if found else None


def counts(text):
  """Returns what was run, and how much of it failed, from the last lines of any of the kinds."""
  summary = re.findall(r"^all +(\d+) +(\d+)$", text, re.MULTILINE)
  if summary:
    return tuple(map(int, summary[-1]))
  failed = number(r"(\d+) FAILED TESTS?", text) or 0
  inputs = re.findall(r"^(\d+) kept, (\d+) mutations,", text, re.MULTILINE)
  if inputs:
    return sum(int(kept) + int(mutations) for kept, mutations in inputs), failed
  for pattern in (r"^\w+: (\d+) of \d+ mistakes tried", r"^(\d+) branches, ",
                  r", (\d+) steps, ", r"^stat::number_of_executed_units: +(\d+)",
                  r"^\[=+\] (\d+) tests? from .* ran", r"^Ran (\d+) tests?"):
    count = number(pattern, text)
    if count is not None:
      return count, failed
  return 0, failed


def main():
  if len(sys.argv) != 2 or sys.argv[1] not in LENGTHS:
    print(__doc__)
    return 2
  rows, is_good = [], True
  for name, command, more in kinds(sys.argv[1]):
    print(f"==> {name}", flush=True)
    begin = time.monotonic()
    done = subprocess.run([str(word) for word in command], cwd=BUILD, text=True,
                          env={**os.environ, **{key: str(value) for key, value in more.items()}},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace",
                          check=False)
    count, failed = counts(done.stdout)
    if done.returncode != 0:
      failed = max(failed, 1)
      print(done.stdout[-4000:])
    is_good = is_good and failed == 0 and count > 0
    rows.append((name, count, failed, time.monotonic() - begin))
  print(f"\n{'kind':<44} {'count':>12} {'failures':>9} {'seconds':>8}")
  for name, count, failed, seconds in rows:
    print(f"{name:<44} {count:>12,} {failed:>9} {seconds:>8.0f}")
  return 0 if is_good else 1


if __name__ == "__main__":
  sys.exit(main())
