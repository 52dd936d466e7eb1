"""Runs examples/python."""

import pathlib
import re
import sys
import tempfile
import unittest

import example_support as support

rest = support.parse_arguments()


class ExamplesTest(unittest.TestCase):
  @classmethod
  def setUpClass(cls):
    holder = tempfile.TemporaryDirectory()
    cls.addClassCleanup(holder.cleanup)
    cls.bundle = support.convert(pathlib.Path(holder.name))

  def program(self, name, *arguments, stdin=""):
    source = support.options.source
    return support.run(sys.executable, "-B", source / "examples/python" / name, self.bundle,
                       *arguments, stdin=stdin, PYTHONPATH=str(source / "bindings/python"),
                       ARENITE_LIBRARY=str(support.options.build / "lib/libarenite.so"))

  def test_chat(self):
    shown = self.program("chat.py", stdin="Tell me a story.\nGo on.\n")
    counts = re.findall(r"\((\d+) tokens; (\d+) of (\d+) before them were kept\)", shown)
    self.assertEqual(2, len(counts))
    self.assertGreaterEqual(int(counts[1][1]), int(counts[0][2]))

  def test_tools(self):
    shown = self.program("tools.py", "What is the time?")
    self.assertIn("no tool calls", shown)  # the demo model tells stories
    self.assertGreater(len(shown.splitlines()), 1)

  def test_stream_async(self):
    self.assertGreater(len(self.program("stream_async.py", "Tell me a story.", "100").strip()), 20)
    cut = self.program("stream_async.py", "Tell me a story.", "0.001")
    self.assertIn("out of time", cut)


if __name__ == "__main__":
  support.main(rest)
