"""Checks the numbers that README and docs quote against what they are quoted from: the benchmark
table, the plan and the story of the demo model, the size of the shared library.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

options = None


def run(*command):
  done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
  if done.returncode != 0:
    raise AssertionError(f"{command}: exit {done.returncode}\n{done.stderr[-3000:]}")
  return done.stdout


def read(name):
  return (options.source / name).read_text()


def table(text, first_cell):
  """Returns the rows of the table whose header begins with `first_cell`, as lists of cells."""
  lines = text.split("\n")
  header = next(i for i, line in enumerate(lines) if line.startswith(f"| {first_cell} |"))
  rows = []
  for line in lines[header + 2:]:
    if not line.startswith("|"):
      break
    rows.append([cell.strip() for cell in line.strip("|").split("|")])
  return rows


class BenchmarksTest(unittest.TestCase):
  @classmethod
  def setUpClass(cls):
    sys.path.insert(0, str(options.source / "tests/bench"))
    import report
    cls.report = report
    cls.document = read("docs/benchmarks.md")

  def test_picture_shows_the_table(self):
    self.assertEqual(self.report.picture_of(self.document), read("docs/benchmarks.svg"),
                     "tests/bench/report.py draws it: picture_of()")

  def test_readme_rounds_the_medians(self):
    rows = {}
    for weights, test, *cells in table(self.document, "weights | test | Arenite, GCC 16"):
      medians = [float(cell.split(" / ")[1]) if cell != "-" else None for cell in cells[:-1]]
      peers = [median for median in medians[1:] if median is not None]
      self.assertAlmostEqual(float(cells[-1]), medians[0] / max(peers), delta=0.006)
      model, ours, _, _ = weights.split()
      rows[model, ours, test] = medians
    quoted = table(read("README.md"), "model")
    self.assertGreater(len(quoted), 8)
    for model, weights, test, ours, llama, ik, ratio in quoted:
      with self.subTest(model=model, weights=weights, test=test):
        arenite, first, mapped, repacked = rows[model, weights, test]
        fastest = max(x for x in (first, mapped, repacked) if x is not None)
        for text, median in ((ours, arenite), (llama, first)):
          self.assertAlmostEqual(float(text), median, delta=0.51)
        if mapped is None:
          self.assertEqual("", ik)
        else:
          self.assertAlmostEqual(float(ik), max(mapped, repacked), delta=0.51)
        self.assertAlmostEqual(float(ratio), arenite / fastest, delta=0.051)


class DemoTest(unittest.TestCase):
  @classmethod
  def setUpClass(cls):
    cls.temporary = tempfile.TemporaryDirectory()
    cls.bundle = pathlib.Path(cls.temporary.name) / "fable-2m.arn"
    run(options.converter, options.source / "models/fable/fable-2m", "-o", cls.bundle, "--weights",
        "int8")
    cls.readme = read("README.md")

  @classmethod
  def tearDownClass(cls):
    cls.temporary.cleanup()

  def test_plan(self):
    block = re.search(r"\$ \S*arenite plan build/fable-2m\.arn (.*)\n((?:.*\n)*?)```", self.readme)
    planned = run(options.tool, "plan", self.bundle, *block.group(1).split(), "--threads", "2")
    self.assertEqual([line.rstrip() for line in planned.strip().split("\n")],
                     block.group(2).rstrip().split("\n"))

  def test_memory_line_adds_up(self):
    quoted = re.sub(r"\s+", " ", self.readme)
    session, constants, kv, activations, io = re.search(
        r"session ([\d.]+) MB = constants ([\d.]+) kB \+ kv ([\d.]+) kB \([\d.]+ kB used\) \+ "
        r"activations ([\d.]+) MB \+ io ([\d.]+) kB", quoted).groups()
    self.assertAlmostEqual(float(session), float(activations) + (float(constants) + float(kv)
                                                                 + float(io)) / 1000, delta=0.006)
    self.assertIn(f"The session's {session} MB were known", quoted)

  def test_story(self):
    quoted = re.search(r"\n(Once upon a time, (?:.+\n)+)\nprompt ", self.readme).group(1)
    command = r'build/demo/bin/arenite run "\$bundle" --prompt "\$prompt" \\\n(.*)\n'
    arguments = re.search(command, read("demo.sh")).group(1).split()
    told = run(options.tool, "run", self.bundle, "--prompt", "Once upon a time", *arguments)
    story = " ".join(("Once upon a time" + told).split())
    at = 0
    for part in " ".join(quoted.split()).split(" [...] "):
      found = story.find(part, at)
      self.assertGreaterEqual(found, at, part)
      at = found + len(part)
    self.assertEqual(at, len(story))


class SizeTest(unittest.TestCase):
  def test_size_of_the_shared_library(self):
    with tempfile.TemporaryDirectory() as folder:
      library = pathlib.Path(folder) / "libarenite.so"
      shutil.copy(options.library, library)
      run(options.strip, "--strip-all", library)
      megabytes = library.stat().st_size / 1e6
    joined = 1.1 if options.joined else 1  # not all that is joined is compiled for size
    for name, sentence in (("README.md", r"one shared library of ([\d.]+) MB"),
                           ("docs/faq.md", r"library is about ([\d.]+) MB stripped on x86-64"),
                           ("docs/integrate-linux.md", r"shared library \(([\d.]+) MB stripped")):
      with self.subTest(name):
        quoted = re.search(sentence, re.sub(r"\s+", " ", read(name))).group(1)
        # Holds for other versions of the compiler, too.
        self.assertAlmostEqual(float(quoted) * joined / megabytes, 1, delta=0.1,
                               msg=f"the library has {megabytes:.2f} MB")


if __name__ == "__main__":
  parser = argparse.ArgumentParser()
  for name in ("source", "tool", "converter", "library"):
    parser.add_argument("--" + name, required=True, type=pathlib.Path)
  parser.add_argument("--strip", required=True)
  parser.add_argument("--joined", action="store_true", help="the library's sources were joined")
  options, rest = parser.parse_known_args()
  unittest.main(argv=[sys.argv[0]] + rest)
