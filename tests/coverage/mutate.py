#!/usr/bin/env python3
"""Plants mistakes in a module's sources, one at a time, and counts those that its tests find.

usage: tests/coverage/mutate.py MODULE [--sample N] [--seed S] [--list]

MODULE is one of coverage.py's. A mistake is one changed token or one lost statement: < for <=, ==
for !=, && for ||, + for -, a number and one more, a negated condition, an assignment or a call left
out. Each is built in a copy of the tree (build/mutants, not optimised) and run against the module's
tests: it is found if one fails, crashes or takes longer than a minute. Those that do not compile
are not counted. Prints the score and every mistake that survived. Mistakes that nobody could see
are listed in equivalent.txt with the reason, and do not count; a line there that is no mistake of
the module any more is an error. The goal is 95 %; fails below LEAST_SCORE, whatever the sample.

Third-party archives are those of build/release, or of the build that ARENITE_DEPS_BUILD names.
--sample N: N mistakes drawn by --seed instead of all. --list: prints the mistakes, builds nothing.
"""

import argparse
import collections
import filecmp
import os
import pathlib
import random
import re
import resource
import shutil
import subprocess
import sys
import time

from coverage import MODULES, ROOT

WORK = ROOT / "build/mutants"
TREE = WORK / "tree"
EQUIVALENT = pathlib.Path(__file__).with_name("equivalent.txt")
MOST_SECONDS = 60
TIMED = "*EndsInTime*"  # limits of time, which hold for optimised builds
LEAST_SCORE = 50.0

# The tests that hold each module, the quickest first.
TESTS = {
    "bundle": ["runtime_bundle_test"],
    "state": ["session_state_test", "session_kv_file_test", "state_fuzz_test"],
    "planner": ["memory_plan_test", "runtime_unit_test", "capi_test", "session_test"],
    "schema": ["json_schema_test", "constrain_test"],
    "template": ["chat_limits_test", "chat_reply_parser_test", "chat_reply_format_test",
                 "chat_given_text_test", "chat_numbers_test", "chat_kinds_test",
                 "chat_goldens_test"],
    "JSON": ["chat_limits_test", "json_schema_test", "converter_safetensors_test"],
    "safetensors": ["converter_safetensors_test", "converter_torch_test"],
    "GGUF": ["converter_gguf_test"],
}

# (What is looked for, what takes its place.)
CHANGES = [
    (r"(?<=\s)<=(?=\s)", "<"), (r"(?<=\s)<(?=\s)", "<="), (r"(?<=\s)>=(?=\s)", ">"),
    (r"(?<=\s)>(?=\s)", ">="), (r"(?<=\s)==(?=\s)", "!="), (r"(?<=\s)!=(?=\s)", "=="),
    (r"(?<=\s)&&(?=\s)", "||"), (r"(?<=\s)\|\|(?=\s)", "&&"), (r"(?<=\s)\+(?=\s)", "-"),
    (r"(?<=\s)-(?=\s)", "+"), (r"(?<=\s)\*(?=\s)", "+"), (r"(?<=\s)\+=(?=\s)", "-="),
    (r"(?<=[\s(])\d+(?=[;,)\s])", lambda number: str(int(number) + 1)),
    (r"(?<=[\s(])true(?=[;,)\s])", "false"), (r"(?<=[\s(])false(?=[;,)\s])", "true"),
]
STATEMENT = re.compile(r"^\s+[\w.>\-\[\]*()]+(\([^{}]*\)| [-+|&^]?= [^{}]+);$")
NOT_STATEMENT = re.compile(r"^\s+(return|using|const|auto|static|constexpr|break|continue|case|"
                           r"template|friend|delete|namespace|typename|goto)\b")
CONDITION = re.compile(r"^(\s+(?:\} else )?if )\((?!constexpr)(.+)\)( \{| return .*;| break;|"
                       r" continue;|)$")

Mistake = collections.namedtuple("Mistake", "file number before after")


def code_of(line):
  """Returns the line with strings, characters and comments blanked, of the same length."""
  blank = lambda match: " " * len(match.group())
  line = re.sub(r'"(\\.|[^"\\])*"|\'(\\.|[^\'\\])+\'', blank, line)
  return re.sub(r"//.*", blank, line)


def is_balanced(text):
  depth = 0
  for c in text:
    depth += (c == "(") - (c == ")")
    if depth < 0:
      return False
  return depth == 0


def changed_lines(line):
  """Yields what mistakes make of a line."""
  code = code_of(line)
  if not code.strip() or code.lstrip().startswith(("#", "*", "static_assert", "template")):
    return
  for pattern, instead in CHANGES:
    for match in re.finditer(pattern, code):
      token = instead(match.group()) if callable(instead) else instead
      yield line[:match.start()] + token + line[match.end():]
  condition = CONDITION.match(code)
  if condition and is_balanced(condition.group(2)):
    start, end = condition.span(2)
    yield f"{line[:start]}!({line[start:end]}){line[end:]}"
  if STATEMENT.match(code) and not NOT_STATEMENT.match(code) and is_balanced(code):
    yield re.match(r"\s*", line).group() + ";"


def mistakes_of(module):
  names = sorted(str(f.relative_to(ROOT)) for pattern in MODULES[module]
                 for f in ROOT.glob(pattern + ("**/*.cc" if pattern.endswith("/") else "*"))
                 if f.suffix == ".cc")
  return [Mistake(name, number, line, after)
          for name in names
          for number, line in enumerate((ROOT / name).read_text().splitlines(), 1)
          for after in changed_lines(line)]


def copy_tree():
  """Brings the copy up to date; a file that has not changed keeps its time, and is not rebuilt."""
  names = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                         cwd=ROOT, capture_output=True, text=True, check=True).stdout
  for name in filter(None, names.split("\0")):
    source, copy = ROOT / name, TREE / name
    if not source.is_file() or (copy.exists() and filecmp.cmp(source, copy, shallow=False)):
      continue
    copy.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, copy)
  if not (TREE / ".deps").exists():
    (TREE / ".deps").symlink_to(ROOT / ".deps")


def configure():
  if (WORK / "build/build.ninja").exists():
    return
  archives = os.environ.get("ARENITE_DEPS_BUILD", ROOT / "build/release")
  # One source an object: that is what is built again for a mistake.
  environment = dict(os.environ, ARENITE_UNITY_BUILD="")
  subprocess.run(
      ["cmake", "-S", str(TREE), "-B", str(WORK / "build"), "-G", "Ninja",
       "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG=-O0", "-DCMAKE_C_FLAGS_DEBUG=-O0",
       "-DARENITE_TESTS=ON", "-DARENITE_VULKAN=OFF", "-DARENITE_SIMD=native",
       "-DARENITE_INSTALL=OFF", f"-DARENITE_DEPS_BUILD={archives}"],
      env=environment, check=True, stdout=subprocess.DEVNULL)


def builds(tests):
  return subprocess.run(["ninja", "-C", str(WORK / "build"), *tests],
                        capture_output=True).returncode == 0


def limit_time():
  """Of the processor, which other programs do not take from."""
  resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))


def verdict(tests):
  """Returns what the tests say of the tree as it is: survived, found or does not compile."""
  for test in tests:
    if not builds([test]):
      return "does not compile"
    command = [str(WORK / "build/bin/tests" / test), "--gtest_brief=1", "--gtest_fail_fast",
               f"--gtest_filter=-{TIMED}"]
    try:
      result = subprocess.run(command, cwd=WORK / "build", capture_output=True,
                              preexec_fn=limit_time, timeout=10 * MOST_SECONDS)
    except subprocess.TimeoutExpired:
      return "found"
    if result.returncode != 0:
      return "found"
  return "survived"


def read_equivalent(mistakes):
  """Returns the mistakes of equivalent.txt that are of this module."""
  known = {(m.file, m.before.strip(), m.after.strip()) for m in mistakes}
  files = {m.file for m in mistakes}
  found = set()
  for number, line in enumerate(EQUIVALENT.read_text().splitlines(), 1):
    if not line.strip() or line.startswith("#"):
      continue
    match = re.fullmatch(r"(\S+): (.+?) => (.+?) # (.+)", line)
    if match is None:
      sys.exit(f"{EQUIVALENT}:{number}: expected 'FILE: LINE => CHANGED LINE # REASON'")
    key = match.groups()[:3]
    if key[0] in files and key not in known:
      sys.exit(f"{EQUIVALENT}:{number}: no such mistake")
    found.add(key)
  return found


def try_all(mistakes, tests):
  """Returns the counts by verdict; prints survivors as they are found."""
  counts = collections.Counter()
  start = time.monotonic()
  for i, mistake in enumerate(mistakes, 1):
    source = TREE / mistake.file
    original = source.read_text()
    lines = original.splitlines()
    lines[mistake.number - 1] = mistake.after
    source.write_text("\n".join(lines) + "\n")
    try:
      result = verdict(tests)
    finally:
      source.write_text(original)
    counts[result] += 1
    if result == "survived":
      print(f"{mistake.file}:{mistake.number}: {mistake.before.strip()} => "
            f"{mistake.after.strip()}", flush=True)
    if i % 10 == 0:
      print(f"  {i} of {len(mistakes)}, {time.monotonic() - start:.0f} s: {dict(counts)}",
            file=sys.stderr, flush=True)
  return counts


def main():
  parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
  parser.add_argument("module", choices=TESTS)
  parser.add_argument("--sample", type=int)
  parser.add_argument("--seed", type=int, default=1)
  parser.add_argument("--list", action="store_true")
  options = parser.parse_args()
  every = mistakes_of(options.module)
  equivalent = read_equivalent(every)
  mistakes = [m for m in every
              if (m.file, m.before.strip(), m.after.strip()) not in equivalent]
  if options.sample is not None and options.sample < len(mistakes):
    mistakes = sorted(random.Random(options.seed).sample(mistakes, options.sample))
  if options.list:
    for m in mistakes:
      print(f"{m.file}:{m.number}: {m.after.strip()}")
    print(f"{len(mistakes)} of {len(every)}")
    return 0

  copy_tree()
  configure()
  tests = TESTS[options.module]
  if not builds(tests):
    sys.exit(f"mutate.py: {' '.join(tests)} do not build")
  if (unchanged := verdict(tests)) != "survived":
    sys.exit(f"mutate.py: without a mistake the tests say: {unchanged}")
  counts = try_all(mistakes, tests)
  n = counts["survived"] + counts["found"]
  score = 100.0 * counts["found"] / max(n, 1)
  print(f"{options.module}: {n} of {len(every)} mistakes tried, {score:.1f} % found "
        f"({counts['survived']} survived, {counts['does not compile']} did not compile, "
        f"{len(equivalent)} listed as equivalent)")
  return 0 if score >= LEAST_SCORE else 1


if __name__ == "__main__":
  sys.exit(main())
