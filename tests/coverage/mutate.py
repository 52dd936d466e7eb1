#!/usr/bin/env python3
"""Plants mistakes in a module's sources, one at a time, and counts those that its tests find.

usage: tests/coverage/mutate.py MODULE [--build FOLDER] [--sample N] [--seed S] [--at FILE:LINE ...]
                                       [--jobs N] [--list]

MODULE is one of coverage.py's; mistakes.py says what is planted. Each mistake is compiled from a
copy of its file, linked into the module's tests in place of what the library has, and run: it is
found if a test fails or crashes, or if the program takes many times as long as without it, or much
more memory. Copies are checked by UndefinedBehaviorSanitizer, and by AddressSanitizer if they are
OF_HEAP, as all of the library is where CI runs these tests. Mistakes that do not compile are not
counted. Prints every mistake that survived, the score, and where the share of all mistakes lies
with 95 % confidence. Mistakes that nobody could see are listed in equivalent.txt with the reason,
and do not count; a line there that is no mistake of the module any more is an error. The goal is
95 %; fails if fewer than LEAST_SCORE % of all are found, with that confidence.

--build: a folder in which the tests are built, with Ninja; build/release. --sample: N of all, of a
random order that --seed tells (1). --at: those of these lines, as survivors are printed. --jobs: at
once (as many as there are processors). --list: prints the mistakes and does nothing.

What makes it quick: headers are compiled once for all mistakes of a library; what is changed is not
optimised; and the tests that found the earlier mistakes of a file are run before the others.
"""

import argparse
import collections
import concurrent.futures
import json
import math
import os
import pathlib
import random
import re
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time

from coverage import ROOT
from mistakes import key_of, mistakes_of, read_equivalent, sources_of

TIMED = "*EndsInTime*"  # limits of time, which hold for optimised builds
LEAST_SCORE = 90
MOST_SECONDS = 600  # of the processor, without a mistake
LEAST_SECONDS, MOST_TIMES = 20, 5  # and with one: so many more, and as often
MOST_FINDERS = 40
SLOW = 0.2  # seconds of a test that is run after the others
UNDEFINED = ["-fsanitize=undefined", "-fno-sanitize=vptr", "-fsanitize-undefined-trap-on-error"]
ADDRESS = ["-fsanitize=address"]
CHECKED = ".checked"  # programs that are linked with it
MOST_MEMORY = 8 << 30  # bytes of address space
# What keeps its data on the heap. The library has arenas, and the tests of templates allocate so
# often that they would take a hundred times as long.
OF_HEAP = ("converter/gguf/", "converter/hf/", "converter/tokenizer/")
ENVIRONMENT = {"LLVM_PROFILE_FILE": os.devnull,
               "ASAN_OPTIONS": "detect_leaks=0:hard_rss_limit_mb=3000:malloc_context_size=0:"
                               "quarantine_size_mb=16"}

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


def option_of(command, flag):
  return command[command.index(flag) + 1] if flag in command else None


def with_option(command, flag, value):
  at = command.index(flag) + 1
  return [*command[:at], str(value), *command[at:][1:]]


def without_lists(command):
  """Leaves out that the headers of a source are listed, which Ninja would read."""
  words = []
  for word in command:
    if word in ("-MT", "-MF") or (words and words[-1] in ("-MT", "-MF")):
      words.append(word)
    elif word != "-MD":
      words.append(word)
  for flag in ("-MT", "-MF"):
    if flag in words:
      at = words.index(flag)
      del words[at:at + 2]
  return words


def first_includes(lines):
  """Returns how many lines come before the code of a source: comments and what it includes."""
  n = 0
  for number, line in enumerate(lines, 1):
    if line.startswith("#include"):
      n = number
    elif line.strip() and not line.startswith("//"):
      break
  return n


def sources_of_file(compiled):
  """Returns the sources that a file of a unity build joins, or itself."""
  joined = re.findall(r'^#include "(/.+)"$', compiled.read_text(errors="replace"), re.MULTILINE)
  sources = joined if "Unity" in compiled.parts else [compiled]
  return [os.path.relpath(pathlib.Path(s).resolve(), ROOT) for s in sources]


def sanitizer_of(source):
  return ADDRESS if source.startswith(OF_HEAP) else []


class Compiler:
  """Compiles sources of a build, and copies of them with a mistake."""

  def __init__(self, build, programs, module, folder):
    self.build, self.module, self.folder = build, module, folder
    self.lock = threading.Lock()
    self.made = {}  # (kind, key): [lock, where, what was made there]
    self.command_of = {s: c for p in programs for s, c in p.command_of.items()}
    self.joined_with = {s: o for p in programs for s, o in p.joined_with.items()}

  def _once(self, kind, key, make):
    """Returns make(path), which one thread runs once for a kind and key."""
    with self.lock:
      path = self.folder / f"{kind}{len(self.made)}"
      entry = self.made.setdefault((kind, key), [threading.Lock(), path, None])
    with entry[0]:
      if entry[2] is None:
        entry[2] = make(entry[1])
      return entry[2]

  def objects(self, sources, made):
    """Returns copies' objects and those of all that is joined with them, each made by itself."""
    others = {other for source in sources for other in self.joined_with[source]} - set(sources)
    return [*made, *(self._once("other", other, lambda path, other=other:
                                self._compile_other(other, path)) for other in sorted(others))]

  def _compile_other(self, source, path):
    made = path.with_suffix(".o")
    command = with_option(self.command_of[source], "-c", ROOT / source)
    subprocess.run([*with_option(command, "-o", made), "-w"], cwd=self.build, check=True)
    return made

  def _unoptimised(self, source):
    """Returns the command for a copy, without the cache, which would only grow."""
    command = [w for w in self.command_of[source]
               if not w.endswith("ccache") and w != "-Winvalid-pch"]
    if option_of(command, "-include"):
      at = command.index("-include")
      del command[at:at + 2]
    return [*command, "-O0", "-U_FORTIFY_SOURCE", "-w", *UNDEFINED, *sanitizer_of(source)]

  def _headers(self, source):
    """Returns a header of all that the module's sources include that have the options of one."""
    command = self._unoptimised(source)
    options = with_option(with_option(command, "-c", ""), "-o", "")
    def make(path):
      header = path.with_suffix(".h")
      lines = []
      precompiled = option_of(self.command_of[source], "-include")
      if precompiled:
        lines.append(f'#include "{precompiled}"')
      for other in sources_of(self.module):
        if other not in self.command_of:
          continue
        others = self._unoptimised(other)
        if with_option(with_option(others, "-c", ""), "-o", "") == options:
          text = (ROOT / other).read_text().splitlines()
          lines += [line for line in text[:first_includes(text)] if line.startswith("#include")]
      header.write_text("\n".join(dict.fromkeys(lines)) + "\n")
      words = with_option(with_option(command, "-c", header), "-o", f"{header}.gch")
      at = words.index("-c")
      subprocess.run([*words[:at], "-x", "c++-header", *words[at:]], cwd=self.build, check=True)
      return header
    return self._once("headers", tuple(options), make)

  def compile(self, source, folder, mistake=None):
    """Returns the object of a copy, with or without a mistake; None if it does not compile."""
    lines = (ROOT / source).read_text().splitlines()
    if mistake is not None:
      lines[mistake.number - 1] = mistake.after
    n = first_includes(lines)
    copied = folder / pathlib.Path(source).name
    made = copied.with_suffix(".o")
    copied.write_text("\n".join([""] * n + lines[n:]) + "\n")
    command = with_option(self._unoptimised(source), "-c", copied)
    command = [*with_option(command, "-o", made), "-include", str(self._headers(source))]
    result = subprocess.run(command, cwd=self.build, capture_output=True)
    return made if result.returncode == 0 else None


  def link_correct(self, source, program):
    """Returns a program with a copy of a source that has no mistake."""
    def make(path):
      path.mkdir()
      made = self.compile(source, path)
      return program.link(self.objects([source], [made]), path, sanitizer_of(source))
    return self._once("correct", (source, program), make)


class Program:
  """A test program, linked and run with other objects in place of some of a library's."""

  def __init__(self, build, name):
    self.build, self.name = build, name
    self.command_of, self.joined_with = {}, {}
    self.seconds = {}  # of the processor, by test, without a mistake
    commands = subprocess.run(["ninja", "-C", str(build), "-t", "commands", name],
                              capture_output=True, text=True, check=True).stdout.splitlines()
    self.output = f"-o bin/tests/{name}"
    self.link_command = next(c for c in commands if self.output + " " in c)
    for command in commands:
      words = shlex.split(command.split(" && ")[-1])
      compiled = option_of(words, "-c")
      if compiled is None or not (build / compiled).is_file():
        continue
      sources = sources_of_file(build / compiled)
      for source in sources:
        self.command_of[source] = without_lists(words)
        self.joined_with[source] = [s for s in sources if s != source]

  def link(self, objects, folder, options):
    program = folder / (self.name + (CHECKED if options else ""))
    linker = ["-fuse-ld=lld"] if shutil.which("ld.lld") else []
    output = " ".join([*options, *linker, "-o", str(program), *map(str, objects)])
    command = self.link_command.replace(self.output, output)
    linked = subprocess.run(command, shell=True, cwd=self.build, capture_output=True, text=True)
    if linked.returncode != 0:
      sys.exit(f"mutate.py: {self.name} does not link: {linked.stderr}")
    return program

  def measure(self):
    """Runs what is built, unless that was done before, for what each test takes."""
    program = self.build / "bin/tests" / self.name
    kept = self.build / "bin/tests" / f"{self.name}.seconds.json"
    if kept.exists() and kept.stat().st_mtime >= program.stat().st_mtime:
      self.seconds = json.loads(kept.read_text())
      return
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    failed, output = self._run(program, f"-{TIMED}", MOST_SECONDS)
    if failed is not None:
      sys.exit(f"mutate.py: {self.name} fails without a mistake: {failed}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    part = used / (time.monotonic() - start) / 1000  # of the time, other programs' left out
    times = re.findall(r"^\[       OK \] (\S+) \((\d+) ms\)$", output, re.MULTILINE)
    self.seconds = {test: round(int(milliseconds) * part, 3) for test, milliseconds in times}
    kept.write_text(json.dumps(self.seconds))

  def failure(self, program, tests):
    """Returns None if the tests pass, or the name of the one that does not, as far as is known."""
    seconds = sum(self.seconds.get(test, 0) for test in tests)
    return self._run(program, ":".join(tests), int(LEAST_SECONDS + MOST_TIMES * seconds))[0]

  def _run(self, program, tests, most_seconds):
    """Returns which test fails, as failure() does, and the output."""
    with tempfile.TemporaryDirectory() as folder:
      flags = pathlib.Path(folder) / "flags"  # they may be longer than an argument
      flags.write_text(f"--gtest_fail_fast\n--gtest_filter={tests}\n")
      command = [str(program), f"--gtest_flagfile={flags}"]
      environment = {**os.environ, **ENVIRONMENT, "TMPDIR": folder, "TEST_TMPDIR": folder}
      limits = [(resource.RLIMIT_CPU, most_seconds), (resource.RLIMIT_CORE, 0)]
      if program.suffix != CHECKED:  # whose own limit is in ENVIRONMENT
        limits.append((resource.RLIMIT_AS, MOST_MEMORY))
      limit = lambda: [resource.setrlimit(kind, (most, most)) for kind, most in limits]
      try:
        result = subprocess.run(command, cwd=self.build, stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL, env=environment, preexec_fn=limit,
                                timeout=10 * most_seconds)
        has_passed, output = result.returncode == 0, result.stdout
      except subprocess.TimeoutExpired as late:
        has_passed, output = False, late.stdout or b""
    output = output.decode(errors="replace")
    if has_passed:
      return None, output
    started = re.findall(r"^\[ RUN      \] (\S+)$", output, re.MULTILINE)
    return started[-1] if started else "", output


class Finders:
  """Which tests found the mistakes of each file so far."""

  def __init__(self, compiler):
    self.compiler = compiler
    self.lock = threading.Lock()
    self.counts = collections.defaultdict(collections.Counter)  # file: (program, test): mistakes

  def add(self, file, program, test):
    if not test:
      return
    with self.lock:
      is_new = self.counts[file][(program, test)] == 0
    # The checks of the copy alone must find nothing.
    if is_new and program.failure(self.compiler.link_correct(file, program), [test]) is not None:
      sys.exit(f"mutate.py: {program.name}: {test} fails with a copy of {file} without a mistake")
    with self.lock:
      self.counts[file][(program, test)] += 1

  def of(self, file, program):
    with self.lock:
      known = self.counts[file].most_common()
    return [test for (name, test), _ in known if name is program][:MOST_FINDERS]


def steps_of(programs, known):
  """Returns (program, tests) in the order of the runs: those that are known to find mistakes, the
  quick ones, and the slow ones."""
  steps = [(p, known[p]) for p in programs]
  for is_slow in (False, True):
    steps += [(p, [test for test, seconds in p.seconds.items()
                   if (seconds >= SLOW) == is_slow and test not in known[p]]) for p in programs]
  return [(p, tests) for p, tests in steps if tests]


def verdict(mistake, compiler, programs, finders):
  """Returns what the tests say of a mistake: survived, found or does not compile."""
  with tempfile.TemporaryDirectory(dir=compiler.folder) as name:
    folder = pathlib.Path(name)
    made = compiler.compile(mistake.file, folder, mistake)
    if made is None:
      return "does not compile"
    objects = compiler.objects([mistake.file], [made])
    linked = {}
    programs = [program for program in programs if mistake.file in program.command_of]
    steps = steps_of(programs, {p: finders.of(mistake.file, p) for p in programs})
    for program, tests in steps:
      if program not in linked:
        linked[program] = program.link(objects, folder, sanitizer_of(mistake.file))
      failed = program.failure(linked[program], tests)
      if failed is not None:
        finders.add(mistake.file, program, failed)
        return "found"
  return "survived"


def try_all(mistakes, compiler, programs, n_jobs):
  """Returns the counts by verdict; prints survivors as they are found."""
  counts = collections.Counter()
  finders = Finders(compiler)
  with concurrent.futures.ThreadPoolExecutor(n_jobs) as pool:
    start = time.monotonic()
    verdicts = pool.map(lambda mistake: verdict(mistake, compiler, programs, finders), mistakes)
    for i, (mistake, result) in enumerate(zip(mistakes, verdicts), 1):
      counts[result] += 1
      if result == "survived":
        print(f"{mistake.file}:{mistake.number}: {mistake.before.strip()} => "
              f"{mistake.after.strip()}", flush=True)
      if i % 10 == 0:
        print(f"  {i} of {len(mistakes)}, {time.monotonic() - start:.0f} s: {dict(counts)}",
              file=sys.stderr, flush=True)
  return counts


def interval(n_found, n):
  """Returns between which shares that of all mistakes lies with 95 % confidence (Wilson)."""
  z, share = 1.96, n_found / n
  middle = share + z * z / (2 * n)
  width = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
  return [100 * (middle + side * width) / (1 + z * z / n) for side in (-1, 1)]


def main():
  parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
  parser.add_argument("module", choices=TESTS)
  parser.add_argument("--sample", type=int)
  parser.add_argument("--seed", type=int, default=1)
  parser.add_argument("--at", nargs="+", metavar="FILE:LINE")
  parser.add_argument("--list", action="store_true")
  parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
  parser.add_argument("--jobs", type=int, default=os.cpu_count())
  options = parser.parse_args()
  every = mistakes_of(options.module)
  equivalent = read_equivalent(every)
  mistakes = [m for m in every if key_of(m) not in equivalent]
  if options.at:
    mistakes = [m for m in mistakes if f"{m.file}:{m.number}" in options.at]
  if options.sample is not None and options.sample < len(mistakes):
    mistakes = sorted(random.Random(options.seed).sample(mistakes, options.sample))
  if options.list:
    for m in mistakes:
      print(f"{m.file}:{m.number}: {m.after.strip()}")
    print(f"{len(mistakes)} of {len(every)}")
    return 0

  tests = TESTS[options.module]
  build = options.build.resolve()
  subprocess.run(["ninja", "-C", str(build), "-j", str(options.jobs), *tests], check=True,
                 stdout=subprocess.DEVNULL)
  with tempfile.TemporaryDirectory() as folder:
    programs = [Program(build, test) for test in tests]
    compiler = Compiler(build, programs, options.module, pathlib.Path(folder))
    unknown = {m.file for m in mistakes} - set(compiler.command_of)
    if unknown:
      sys.exit(f"mutate.py: none of the tests has {', '.join(sorted(unknown))}")
    for program in programs:
      program.measure()
      print(f"  {program.name}: {len(program.seconds)} tests, "
            f"{sum(program.seconds.values()):.1f} s", file=sys.stderr, flush=True)
    counts = try_all(mistakes, compiler, programs, options.jobs)
  n = counts["survived"] + counts["found"]
  score = 100.0 * counts["found"] / max(n, 1)
  low, high = interval(counts["found"], n) if n else (0, 100)
  print(f"{options.module}: {n} of {len(every)} mistakes tried, {score:.1f} % found "
        f"(of all {low:.0f} to {high:.0f} %; {counts['survived']} survived, "
        f"{counts['does not compile']} did not compile, {len(equivalent)} listed as equivalent)")
  return 0 if high >= LEAST_SCORE else 1


if __name__ == "__main__":
  sys.exit(main())
