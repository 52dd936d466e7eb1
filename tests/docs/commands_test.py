"""Runs the commands that docs/skills.md shows for tiny checkpoints, as they stand there."""

import argparse
import pathlib
import subprocess
import sys
import tempfile
import unittest

options = None
FIRST = 'export PATH="$PWD/build/release/bin:$PATH"\n'


def block(text, first_line):
  """Returns the code block that begins with a line."""
  begin = text.index("```\n" + first_line) + len("```\n")
  return text[begin:text.index("```", begin)]


class CommandsTest(unittest.TestCase):

  def test_tiny_skills(self):
    commands = block((options.source / "docs/skills.md").read_text(), FIRST)
    self.assertGreater(commands.count("arenite "), 4)
    with tempfile.TemporaryDirectory() as name:
      folder = pathlib.Path(name)
      for part in ("tests", "models"):
        (folder / part).symlink_to(options.source / part)
      programs = folder / "build/release/bin"
      programs.mkdir(parents=True)
      for program in (options.tool, options.converter):
        (programs / program.name).symlink_to(program)
      done = subprocess.run(["bash", "-euo", "pipefail", "-c", commands], cwd=folder,
                            capture_output=True, text=True)
      self.assertEqual(0, done.returncode, done.stderr[-3000:] + done.stdout[-1000:])
      tiny = folder / "build/tiny"
      for made in ("notes.npy", "embedder.arn", "reranker.arn", "eyes.arn", "ears.arn",
                   "style.arn"):
        self.assertGreater((tiny / made).stat().st_size, 100, made)
      # The reranker's lines: all three notes, each once.
      for note in (tiny / "notes.txt").read_text().splitlines():
        self.assertEqual(1, done.stdout.count(note), done.stdout)
      self.assertIn("-->", done.stdout)  # SRT


def main():
  global options
  parser = argparse.ArgumentParser(description=__doc__)
  for name in ("source", "tool", "converter"):
    parser.add_argument(f"--{name}", type=pathlib.Path, required=True)
  options, rest = parser.parse_known_args()
  unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
  main()
