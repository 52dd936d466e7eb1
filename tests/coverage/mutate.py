#!/usr/bin/env python3
"""Plants mistakes in a module's sources, one at a time, and counts those that its tests find.

usage: tests/coverage/mutate.py MODULE [--build FOLDER] [--sample N] [--seed S] [--part I/N]
                                       [--jobs N] [--list]

MODULE is one of coverage.py's. A mistake is one changed token or one lost statement: < for <=, ==
for !=, && for ||, + for -, a number and one more, a negated condition, an assignment or a call left
out. Each is compiled from a copy of its file, linked into the module's tests in place of what the
library has, and run: it is found if a test fails, crashes or takes longer than a minute. Those that
do not compile are not counted. Prints the score and every mistake that survived. Mistakes that
nobody could see are listed in equivalent.txt with the reason, and do not count; a line there that
is no mistake of the module any more is an error. The goal is 95 %; fails below LEAST_SCORE,
whatever the sample.

--build: a folder in which the tests are built, with Ninja; build/coverage, which coverage.py makes.
--sample N: N mistakes drawn by --seed instead of all. --part I/N: of these the I-th of N parts.
--jobs N: mistakes that are tried at a time; one for each processor.
--list: prints the mistakes, builds nothing.
"""

import argparse
import collections
import concurrent.futures
import os
import pathlib
import random
import re
import resource
import shlex
import subprocess
import sys
import tempfile
import time

from coverage import BUILD, MODULES, ROOT

EQUIVALENT = pathlib.Path(__file__).with_name("equivalent.txt")
MOST_SECONDS = 60
TIMED = "*EndsInTime*"  # limits of time, which hold for optimised builds
LEAST_SCORE = 50.0

# The tests that hold each module, the quickest first.
TESTS = {
    "bundle": ["runtime_bundle_test", "converter_sign_test"],
    "state": ["state_reader_test", "session_state_test"],
    "planner": ["session_plan_test", "runtime_unit_test", "memory_plan_test"],
    "schema": ["json_schema_test", "constrain_test"],
    "template": ["chat_templates_test", "chat_given_text_test", "chat_numbers_test",
                 "chat_goldens_test", "chat_reply_format_test", "chat_reply_parser_test",
                 "chat_kinds_test", "chat_limits_test"],
    "JSON": ["chat_goldens_test", "chat_limits_test", "json_schema_test",
             "converter_safetensors_test", "converter_parts_test"],
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


class Program:
  """How a test program is compiled and linked in a build folder."""

  def __init__(self, build, name):
    self.build, self.name = build, name
    commands = subprocess.run(["ninja", "-C", str(build), "-t", "commands", name],
                              capture_output=True, text=True, check=True).stdout.splitlines()
    self.compile_of = {}  # source: (the file that is compiled, its command)
    for command in commands:
      words = command.split(" && ")[-1].split(" -c ")
      if len(words) != 2:
        continue
      compiled = build / words[1].strip()
      if not compiled.is_file():
        continue
      for source in self._sources_of(compiled):
        self.compile_of[source] = (compiled, shlex.split(command))
    output = f"-o bin/tests/{name}"
    self.link = next(c for c in commands if output + " " in c)
    self.output = output

  @staticmethod
  def _sources_of(compiled):
    """Returns the sources that a file of a unity build joins, or itself."""
    joined = re.findall(r'^#include "(/.+)"$', compiled.read_text(errors="replace"), re.MULTILINE)
    sources = joined if "Unity" in compiled.parts else [compiled]
    return [os.path.relpath(pathlib.Path(s).resolve(), ROOT) for s in sources]

  def compile(self, mistake, folder):
    """Returns the object of a file with a mistake; None if it does not compile."""
    compiled, command = self.compile_of[mistake.file]
    changed = folder / pathlib.Path(mistake.file).name
    lines = (ROOT / mistake.file).read_text().splitlines()
    lines[mistake.number - 1] = mistake.after
    changed.write_text("\n".join(lines) + "\n")
    if compiled.resolve() != (ROOT / mistake.file).resolve():
      text = compiled.read_text()
      joined = folder / "joined.cc"
      original = str((ROOT / mistake.file).resolve())
      joined.write_text(re.sub(
          r'"(/.+)"', lambda m: f'"{changed if os.path.realpath(m[1]) == original else m[1]}"',
          text))
      changed = joined
    made = folder / "mistake.o"
    # Without the cache, which would only grow, and the list of headers.
    command = [w for w in command if not w.endswith("ccache")]
    for flag, value in (("-o", str(made)), ("-c", str(changed)), ("-MF", str(folder / "d"))):
      if flag in command:
        command[command.index(flag) + 1] = value
    result = subprocess.run(command, cwd=self.build, capture_output=True)
    return made if result.returncode == 0 else None

  def passes(self, made, folder):
    """Links with an object in place of the library's; True if the tests pass."""
    program = folder / self.name
    link = self.link.replace(self.output, f"-o {program} {made or ''}")
    if subprocess.run(link, shell=True, cwd=self.build, capture_output=True).returncode != 0:
      sys.exit(f"mutate.py: {self.name} does not link")
    command = [str(program), "--gtest_brief=1", "--gtest_fail_fast", f"--gtest_filter=-{TIMED}"]
    environment = dict(os.environ, LLVM_PROFILE_FILE=os.devnull)
    try:
      result = subprocess.run(command, cwd=self.build, capture_output=True, env=environment,
                              preexec_fn=limit_time, timeout=10 * MOST_SECONDS)
    except subprocess.TimeoutExpired:
      return False
    return result.returncode == 0


def limit_time():
  """Of the processor, which other programs do not take from."""
  resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))


def verdict(mistake, programs):
  """Returns what the tests say of a mistake: survived, found or does not compile."""
  having = [p for p in programs if mistake.file in p.compile_of]
  if not having:
    sys.exit(f"mutate.py: none of the tests has {mistake.file}")
  with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    made = having[0].compile(mistake, folder)
    if made is None:
      return "does not compile"
    return "survived" if all(p.passes(made, folder) for p in having) else "found"


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


def try_all(mistakes, programs, n_jobs):
  """Returns the counts by verdict; prints survivors as they are found."""
  counts = collections.Counter()
  start = time.monotonic()
  with concurrent.futures.ThreadPoolExecutor(n_jobs) as pool:
    verdicts = pool.map(lambda mistake: verdict(mistake, programs), mistakes)
    for i, (mistake, result) in enumerate(zip(mistakes, verdicts), 1):
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
  parser.add_argument("--build", type=pathlib.Path, default=BUILD)
  parser.add_argument("--part", default="1/1")
  parser.add_argument("--jobs", type=int, default=os.cpu_count())
  options = parser.parse_args()
  every = mistakes_of(options.module)
  equivalent = read_equivalent(every)
  mistakes = [m for m in every
              if (m.file, m.before.strip(), m.after.strip()) not in equivalent]
  if options.sample is not None and options.sample < len(mistakes):
    mistakes = sorted(random.Random(options.seed).sample(mistakes, options.sample))
  part, n_parts = (int(n) for n in options.part.split("/"))
  mistakes = mistakes[part - 1::n_parts]
  if options.list:
    for m in mistakes:
      print(f"{m.file}:{m.number}: {m.after.strip()}")
    print(f"{len(mistakes)} of {len(every)}")
    return 0

  tests = TESTS[options.module]
  build = options.build.resolve()
  subprocess.run(["ninja", "-C", str(build), "-j", str(options.jobs), *tests], check=True,
                 stdout=subprocess.DEVNULL)
  programs = [Program(build, test) for test in tests]
  with tempfile.TemporaryDirectory() as folder:
    for program in programs:
      if not program.passes(None, pathlib.Path(folder)):
        sys.exit(f"mutate.py: {program.name} fails without a mistake")
  counts = try_all(mistakes, programs, options.jobs)
  n = counts["survived"] + counts["found"]
  score = 100.0 * counts["found"] / max(n, 1)
  print(f"{options.module}: {n} of {len(every)} mistakes tried, {score:.1f} % found "
        f"({counts['survived']} survived, {counts['does not compile']} did not compile, "
        f"{len(equivalent)} listed as equivalent)")
  return 0 if score >= LEAST_SCORE else 1


if __name__ == "__main__":
  sys.exit(main())
