#!/usr/bin/env python3
"""Counts which branches of the readers of foreign bytes and of the planner the tests take.

usage: tests/coverage/coverage.py [--no-run] [--keep] [--module NAME ...] [--tests NAME ...]
                                  [--show] [--mcdc SUFFIX]

Builds the preset coverage (clang), runs the tests that reach the modules below, and prints a table
of lines and branches. A branch is one outcome of a condition, as clang counts them: each operand of
&& and || is a condition of its own, and so is each use of a macro that has one. It is taken if any
program takes it in any instantiation of its template. Fails if a module has fewer taken than LEAST
says, of those that exceptions.txt does not list, and if a line there covers no branch.

--no-run: reads the counts of the last run. --keep: adds to them. --module: only these. --tests: of
these programs only (with --keep, a run in several parts; LEAST is for all of them). --show: prints
every branch that was not taken, with its source line.

--mcdc SUFFIX: counts conditions too, those that have been shown to decide their decision by
themselves (MC/DC), with clang-SUFFIX and llvm-cov-SUFFIX of version 18 or later, in a build of its
own. Decisions are those with two to six conditions; options of the build (kHas...) are none.

Third-party archives are those of build/release, or of the build that ARENITE_DEPS_BUILD names.
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
# Percent of the branches, exceptions left out.
LEAST = {"bundle": 100, "state": 100, "planner": 100, "schema": 100, "template": 100, "JSON": 100,
         "safetensors": 100, "GGUF": 100}
# Test programs that reach them.
TESTS = [
    "capi_test", "chat_given_text_test", "chat_goldens_test", "chat_kinds_test", "chat_limits_test",
    "chat_numbers_test", "chat_reply_format_test", "chat_reply_parser_test", "chat_templates_test",
    "constrain_test", "converter_chat_test", "converter_errors_test", "converter_families_test",
    "converter_gguf_test", "converter_parts_test", "converter_quantised_test",
    "converter_safetensors_test", "converter_sign_test", "converter_torch_test",
    "fuzz_corpus_test", "fuzz_test", "golden_constraint_test", "golden_encoder_test",
    "golden_pooled_test", "json_schema_test", "memory_plan_test", "runtime_bundle_test",
    "runtime_unit_test", "session_adapter_test", "session_assistant_test", "session_cache_test",
    "session_device_test", "session_kv_file_test", "session_mtp_test", "session_plan_test",
    "session_scheduler_test", "session_speculation_test", "session_state_test", "session_test",
    "state_fuzz_test", "state_reader_test", "text_structure_test", "trust_cve_test",
]
REGION_EXPANSION = 1


class Toolchain:
  """Clang's tools, of the version that the preset names or any; or with a suffix."""

  def __init__(self, suffix):
    self.build = BUILD if suffix is None else ROOT / "build/mcdc"
    self.suffixes = ("-14", "") if suffix is None else (f"-{suffix}",)
    self.settings = [] if suffix is None else [
        f"-DCMAKE_C_COMPILER=clang-{suffix}", f"-DCMAKE_CXX_COMPILER=clang++-{suffix}",
        # The compiler refuses the last without the first two, also where CMake tries it out.
        "-DCMAKE_CXX_FLAGS=-fprofile-instr-generate -fcoverage-mapping -fcoverage-mcdc"]
    if "ARENITE_DEPS_BUILD" in os.environ:
      self.settings.append(f"-DARENITE_DEPS_BUILD={os.environ['ARENITE_DEPS_BUILD']}")

  def command(self, name):
    for suffix in self.suffixes:
      if shutil.which(name + suffix):
        return name + suffix
    missing = self.suffixes[0]
    sys.exit(f"coverage.py: {name} is missing: apt-get install clang{missing} llvm{missing}")


def build_and_run(toolchain, tests, keeps):
  build = toolchain.build
  environment = dict(os.environ, ARENITE_UNITY_BUILD="ALL")
  if not (build / "build.ninja").exists():
    subprocess.run(["cmake", "--preset", "coverage", "-B", str(build), *toolchain.settings],
                   cwd=ROOT, env=environment, check=True)
  subprocess.run(["cmake", "--build", str(build), "--target", *tests], env=environment, check=True)
  counts = build / "counts"
  if not keeps:
    shutil.rmtree(counts, ignore_errors=True)
  counts.mkdir(exist_ok=True)
  # %m: programs of one signature share a file, into which each process merges its counts.
  environment["LLVM_PROFILE_FILE"] = str(counts / "%m.profraw")
  names = "^(" + "|".join(tests) + ")([.][0-9]+)?$"
  subprocess.run(["ctest", "--test-dir", str(build), "-R", names, "-j", str(os.cpu_count()), "-Q",
                  "--output-on-failure"], env=environment, check=True)


def merge_counts(toolchain):
  files = sorted(str(f) for f in (toolchain.build / "counts").glob("*.profraw"))
  subprocess.run([toolchain.command("llvm-profdata"), "merge", "-sparse", "-o",
                  str(toolchain.build / "counts.profdata"), *files], check=True)


class Source:
  """What is known of one file: its branches and lines, and how often each ran."""

  def __init__(self):
    self.branches = collections.Counter()  # (line, column, end line, end column, outcome)
    self.lines = collections.Counter()
    self.conditions = collections.defaultdict(bool)  # (place of the decision, index): was shown


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


def add_decisions(function, names, patterns, sources):
  """Adds the conditions of a function's decisions that were shown to matter."""
  for decision in function.get("mcdc_records", []):
    place, conditions = tuple(decision[:4]), decision[-1]
    name = os.path.relpath(names[0], ROOT)
    if not name.startswith(patterns):
      continue
    for i, is_shown in enumerate(conditions):
      sources[name].conditions[(*place, i)] |= is_shown


def read_counts(toolchain, programs, modules):
  patterns = tuple(p for name in modules for p in MODULES[name])
  sources = collections.defaultdict(Source)
  for program in programs:
    arguments = [toolchain.command("llvm-cov"), "export",
                 str(toolchain.build / "bin/tests" / program), "-format=text",
                 f"-instr-profile={toolchain.build / 'counts.profdata'}"]
    exported = subprocess.run(arguments, capture_output=True, text=True, check=True).stdout
    for function in json.loads(exported)["data"][0]["functions"]:
      names = [str(pathlib.Path(f).resolve()) for f in function["filenames"]]
      add_decisions(function, names, patterns, sources)
      sites = call_sites(function)
      # Where a macro has several conditions they keep their order.
      in_macro = collections.Counter()
      for branch in function.get("branches", []):
        file, *place = place_of(branch, sites)
        name = os.path.relpath(names[file], ROOT)
        if not name.startswith(patterns):
          continue
        order = in_macro[(file, *place)] if branch[6] in sites else 0
        in_macro[(file, *place)] += 1
        for outcome, n in ((True, branch[4]), (False, branch[5])):
          sources[name].branches[(*place, order, outcome)] += n
      for region in function["regions"]:
        name = os.path.relpath(names[region[5]], ROOT)
        if region[7] == 0 and name.startswith(patterns):
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


def is_build_option(place, text):
  """True for the first condition of a decision that begins with a constant of the build."""
  line, column, *_, i = place
  return i == 0 and text[line - 1][column - 1:].startswith("kHas")


def print_decisions(modules, sources, shows, texts):
  print("\n| module | conditions | decide by themselves |\n|---|--:|--:|")
  for name, source in sources.items():
    for place in [p for p in source.conditions if is_build_option(p, texts[name])]:
      del source.conditions[place]
  for module in modules:
    shown = [is_shown for name, source in sources.items()
             if name.startswith(tuple(MODULES[module])) for is_shown in source.conditions.values()]
    print(f"| {module} | {len(shown):,} | {100.0 * sum(shown) / max(len(shown), 1):.1f} % |")
  if not shows:
    return
  for name, source in sorted(sources.items()):
    for (line, column, *_, i), is_shown in sorted(source.conditions.items()):
      if not is_shown:
        print(f"{name}:{line}:{column}: condition {i + 1} does not decide: "
              f"{texts[name][line - 1].strip()}")


def main():
  parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
  parser.add_argument("--no-run", action="store_true")
  parser.add_argument("--module", action="append", choices=MODULES)
  parser.add_argument("--show", action="store_true")
  parser.add_argument("--keep", action="store_true")
  parser.add_argument("--tests", nargs="+", choices=TESTS, default=TESTS, metavar="NAME")
  parser.add_argument("--mcdc", metavar="SUFFIX")
  options = parser.parse_args()
  toolchain = Toolchain(options.mcdc)
  if not options.no_run:
    build_and_run(toolchain, options.tests, options.keep)
  merge_counts(toolchain)
  modules = options.module or list(MODULES)
  sources = read_counts(toolchain, options.tests, modules)
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
  if options.mcdc is not None:
    print_decisions(modules, sources, options.show, texts)
  if options.show:
    print("\n".join(sorted(set(missing))))
  for exception in unused:
    print(f"exceptions.txt: {exception.file}: {exception.text}: covers no branch")
  print("\n".join([*below, f"{n_all} branches, {n_missing} of them missing"]))
  return 1 if below or unused else 0


if __name__ == "__main__":
  sys.exit(main())
