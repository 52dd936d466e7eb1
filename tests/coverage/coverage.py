#!/usr/bin/env python3
"""Counts which branches of the readers of foreign bytes and of the planner the tests take.

usage: tests/coverage/coverage.py [--no-run] [--module NAME ...] [--show]

Builds the preset coverage (clang), runs the tests that reach the modules below, and prints a table
of lines and branches. A branch is one outcome of a condition, as clang counts them: each operand of
&& and || is a condition of its own, and so is each use of a macro that has one. It is taken if any
program takes it in any instantiation of its template. Fails if a module has fewer taken than LEAST
says, of those that exceptions.txt does not list, and if a line there covers no branch.

--no-run: reads the counts of the last run. --module: only these. --show: prints every branch that
was not taken, with its source line.
"""

import argparse
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build/coverage"
EXCEPTIONS = pathlib.Path(__file__).with_name("exceptions.txt")

# Name: patterns of the sources.
MODULES = {
    "bundle": ["runtime/bundle/"],
    "state": ["runtime/state/"],
    "planner": ["runtime/memory/"],
    "schema": ["runtime/constrain/json_schema/"],
    "template": ["runtime/chat/", "converter/chat/"],
    "JSON": ["converter/hf/json_file", "converter/tokenizer/json_node", "runtime/chat/json_",
             "runtime/constrain/json_schema/read.cc"],
    "safetensors": ["converter/hf/safetensors", "converter/hf/torch_file", "converter/hf/pickle",
                    "converter/hf/zip"],
    "GGUF": ["converter/gguf/"],
}
# Percent of the branches, exceptions left out. To be raised with what is reached; the goal is 100.
LEAST = {"bundle": 96, "state": 83, "planner": 78, "schema": 88, "template": 92, "JSON": 94,
         "safetensors": 96, "GGUF": 98}
# Test programs that reach them.
TESTS = [
    "capi_test", "chat_given_text_test", "chat_goldens_test", "chat_kinds_test", "chat_limits_test",
    "chat_numbers_test", "chat_reply_format_test", "chat_reply_parser_test", "constrain_test",
    "converter_chat_test", "converter_errors_test", "converter_families_test",
    "converter_gguf_test", "converter_parts_test", "converter_quantised_test",
    "converter_safetensors_test", "converter_sign_test", "converter_torch_test",
    "fuzz_corpus_test", "fuzz_test", "golden_constraint_test", "golden_encoder_test",
    "golden_pooled_test", "json_schema_test", "memory_plan_test", "runtime_bundle_test",
    "runtime_unit_test", "session_adapter_test", "session_assistant_test", "session_cache_test",
    "session_device_test", "session_kv_file_test", "session_mtp_test", "session_scheduler_test",
    "session_speculation_test", "session_state_test", "session_test", "state_fuzz_test",
    "text_structure_test", "trust_cve_test",
]
REGION_EXPANSION = 1


def command(name):
  """Returns the path of one of clang's tools, of the version that the preset names or any."""
  for candidate in (f"{name}-14", name):
    if shutil.which(candidate):
      return candidate
  sys.exit(f"coverage.py: {name} is missing: apt-get install clang-14 llvm-14")


def build_and_run():
  environment = dict(os.environ, ARENITE_UNITY_BUILD="ALL")
  if not (BUILD / "build.ninja").exists():
    subprocess.run(["cmake", "--preset", "coverage"], cwd=ROOT, env=environment, check=True)
  build = ["cmake", "--build", "--preset", "coverage", "--target", *TESTS]
  subprocess.run(build, cwd=ROOT, env=environment, check=True)
  counts = BUILD / "counts"
  shutil.rmtree(counts, ignore_errors=True)
  counts.mkdir()
  # %m: programs of one signature share a file, into which each process merges its counts.
  environment["LLVM_PROFILE_FILE"] = str(counts / "%m.profraw")
  names = "^(" + "|".join(TESTS) + ")([.][0-9]+)?$"
  subprocess.run(["ctest", "--preset", "coverage", "-R", names, "-j", str(os.cpu_count()), "-Q"],
                 cwd=ROOT, env=environment, check=True)
  files = sorted(str(f) for f in counts.glob("*.profraw"))
  merged = str(BUILD / "counts.profdata")
  subprocess.run([command("llvm-profdata"), "merge", "-sparse", "-o", merged, *files], check=True)


class Source:
  """What is known of one file: its branches and lines, and how often each ran."""

  def __init__(self):
    self.branches = collections.Counter()  # (line, column, end line, end column, outcome)
    self.lines = collections.Counter()


def call_sites(function):
  """Maps each file of a function to the place in the source where its macro is used."""
  sites = {}
  for line, column, end_line, end_column, _, file, expanded, kind in function["regions"]:
    if kind == REGION_EXPANSION:
      sites[expanded] = (file, line, column, end_line, end_column)
  return sites


def place_of(branch, sites):
  """Returns (file, line, column, end line, end column) of a branch; in a macro, of its use."""
  file, place = branch[6], tuple(branch[:4])
  while file in sites:
    file, *place = sites[file]
  return (file, *place)


def read_counts(modules):
  patterns = [p for name in modules for p in MODULES[name]]
  sources = collections.defaultdict(Source)
  for program in TESTS:
    arguments = [command("llvm-cov"), "export", str(BUILD / "bin/tests" / program),
                 "-format=text", f"-instr-profile={BUILD / 'counts.profdata'}"]
    exported = subprocess.run(arguments, capture_output=True, text=True, check=True).stdout
    for function in json.loads(exported)["data"][0]["functions"]:
      names = [str(pathlib.Path(f).resolve()) for f in function["filenames"]]
      sites = call_sites(function)
      # Where a macro has several conditions they keep their order.
      in_macro = collections.Counter()
      for branch in function.get("branches", []):
        file, *place = place_of(branch, sites)
        name = os.path.relpath(names[file], ROOT)
        if not name.startswith(tuple(patterns)):
          continue
        order = in_macro[(file, *place)] if branch[6] in sites else 0
        in_macro[(file, *place)] += 1
        for outcome, n in ((True, branch[4]), (False, branch[5])):
          sources[name].branches[(*place, order, outcome)] += n
      for region in function["regions"]:
        name = os.path.relpath(names[region[5]], ROOT)
        if region[7] == 0 and name.startswith(tuple(patterns)):
          for line in range(region[0], region[2] + 1):
            sources[name].lines[line] += region[4]
  return sources


class ExceptionLine:
  """A line of exceptions.txt: which branches no test need take."""

  def __init__(self, file, outcomes, text):
    self.file, self.outcomes, self.text = file, outcomes, text
    self.pattern = re.compile(".*".join(re.escape(part) for part in text.split("*")))
    self.uses = 0

  def covers(self, name, outcome, line):
    is_here = name.startswith(self.file) if self.file.endswith("/") else name == self.file
    return is_here and outcome in self.outcomes and self.pattern.fullmatch(line) is not None


def read_exceptions():
  exceptions = []
  for number, line in enumerate(EXCEPTIONS.read_text().splitlines(), 1):
    if not line.strip() or line.startswith("#"):
      continue
    match = re.fullmatch(r"(\S+): (true|false|both): (.+?) # (.+)", line)
    if match is None:
      sys.exit(f"{EXCEPTIONS}:{number}: expected 'FILE: true|false|both: SOURCE # REASON'")
    outcomes = {"true": {True}, "false": {False}, "both": {True, False}}[match.group(2)]
    exceptions.append(ExceptionLine(match.group(1), outcomes, match.group(3)))
  return exceptions


def main():
  parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
  parser.add_argument("--no-run", action="store_true")
  parser.add_argument("--module", action="append", choices=MODULES)
  parser.add_argument("--show", action="store_true")
  options = parser.parse_args()
  if not options.no_run:
    build_and_run()
  modules = options.module or list(MODULES)
  sources = read_counts(modules)
  exceptions = read_exceptions()
  texts = {name: (ROOT / name).read_text().splitlines() for name in sources}

  print("| module | lines | run | branches | taken | excepted | missing |")
  print("|---|--:|--:|--:|--:|--:|--:|")
  missing, below = [], []
  n_all = n_missing = 0
  for module in modules:
    counts = collections.Counter()
    for name, source in sorted(sources.items()):
      if not name.startswith(tuple(MODULES[module])):
        continue
      counts["lines"] += len(source.lines)
      counts["run"] += sum(n > 0 for n in source.lines.values())
      for (line, column, *_, outcome), n in sorted(source.branches.items()):
        counts["branches"] += 1
        if n > 0:
          counts["taken"] += 1
          continue
        text = texts[name][line - 1].strip()
        exception = next((e for e in exceptions if e.covers(name, outcome, text)), None)
        if exception is not None:
          exception.uses += 1
          counts["excepted"] += 1
        else:
          counts["missing"] += 1
          missing.append(f"{name}:{line}:{column}: never {str(outcome).lower()}: {text}")
    percent = lambda part, whole: 100.0 * counts[part] / max(counts[whole], 1)
    print(f"| {module} | {counts['lines']:,} | {percent('run', 'lines'):.1f} % | "
          f"{counts['branches']:,} | {percent('taken', 'branches'):.1f} % | "
          f"{counts['excepted']:,} | {counts['missing']:,} |")
    n_all += counts["branches"]
    n_missing += counts["missing"]
    n_wanted = counts["branches"] - counts["excepted"]
    if 100.0 * counts["taken"] < LEAST[module] * n_wanted:
      below.append(f"{module}: fewer than {LEAST[module]} % of {n_wanted} branches are taken")
  patterns = tuple(p for m in modules for p in MODULES[m])
  unused = [e for e in exceptions
            if e.uses == 0 and (e.file.startswith(patterns) or modules == list(MODULES))]
  if options.show:
    print("\n".join(sorted(set(missing))))
  for exception in unused:
    print(f"exceptions.txt: {exception.file}: {exception.text}: covers no branch")
  print("\n".join([*below, f"{n_all} branches, {n_missing} of them missing"]))
  return 1 if below or unused else 0


if __name__ == "__main__":
  sys.exit(main())
