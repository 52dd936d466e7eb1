"""Builds examples/c as a project of its own, over the installed library, and runs each program."""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import example_support as support

rest = support.parse_arguments()
sys.path.insert(0, str(support.options.source / "tests/support"))

from speech_checkpoint import signal, write_checkpoint  # noqa: E402
from vision_checkpoint import golden_image, write_vision_checkpoint  # noqa: E402


class ExamplesTest(unittest.TestCase):
  @classmethod
  def setUpClass(cls):
    holder = tempfile.TemporaryDirectory()
    cls.addClassCleanup(holder.cleanup)
    cls.folder = pathlib.Path(holder.name)
    prefix, cls.built = cls.folder / "prefix", cls.folder / "build"
    support.run("cmake", "--install", support.options.build, "--prefix", prefix, "--strip")
    support.run("cmake", "-S", support.options.source / "examples/c", "-B", cls.built,
                "-G", "Ninja", f"-DCMAKE_C_COMPILER={support.options.cc}",
                f"-DCMAKE_PREFIX_PATH={prefix}",
                "-DCMAKE_C_FLAGS=-Wall -Wextra -Wpedantic -Werror")
    support.run("cmake", "--build", cls.built)
    cls.bundle = support.convert(cls.folder)

  def program(self, name, *arguments, stdin=""):
    return support.run(self.built / name, self.bundle, *arguments, stdin=stdin)

  def test_chat(self):
    shown = self.program("chat", stdin="Tell me a story.\nGo on.\n")
    counts = re.findall(r"\((\d+) tokens; (\d+) of (\d+) before them were kept\)", shown)
    self.assertEqual(2, len(counts))
    self.assertEqual("0", counts[0][1])
    self.assertGreaterEqual(int(counts[1][1]), int(counts[0][2]))

  def test_stream(self):
    shown = self.program("stream", "Once upon a time")
    self.assertTrue(shown.startswith("Once upon a time"))
    self.assertIn("ended by a stop string", shown)
    self.assertNotIn(".", shown.split("\n(")[0])

  def test_batch(self):
    prompts = ["Once upon a time", "The little dog", "In the garden"]
    lines = self.program("batch", *prompts).splitlines()
    for number, prompt in enumerate(prompts):
      (line,) = [line for line in lines if line.startswith(f"{number}: ")]
      self.assertTrue(line.startswith(f"{number}: {prompt}"), line)
      self.assertGreater(len(line), len(prompt) + 20)
    alone = self.program("batch", prompts[1])
    self.assertEqual([line[3:] for line in lines if line.startswith("1: ")],
                     [line[3:] for line in alone.splitlines() if line.startswith("0: ")])

  def test_requests(self):
    prompts = ["Once upon a time, there was a little girl", "Once upon a time, there was a fox",
               "In the garden behind the old house there lived a small gray mouse"]
    shown = self.program("requests", *prompts)
    texts = dict(re.findall(r"^(\d): (?!\d+ tokens)(.+?)(?=\n\d: |\Z)", shown, re.S | re.M))
    kept = {n: (int(all), int(k)) for n, all, k in
            re.findall(r"^(\d): (\d+) tokens, (\d+) of them known already$", shown, re.M)}
    self.assertEqual([str(i) for i in range(6)], sorted(texts))
    for i in range(0, 6, 2):
      self.assertNotEqual(texts[str(i)], texts[str(i + 1)], "another seed")
      n, known = kept[str(i + 1)]
      self.assertIn(known, (n - 1, n), "the second of two is a copy")

  def test_save_restore(self):
    name = self.folder / "saved"
    first = self.program("save_restore", name)
    self.assertIn("(0 tokens were kept", first)
    second = self.program("save_restore", name)
    kept = int(re.search(r"\((\d+) tokens were kept", second)[1])
    self.assertGreater(kept, 20)
    messages = json.loads(second[:second.rindex("\n(")])
    self.assertEqual(["user", "assistant", "user", "assistant"], [m["role"] for m in messages])
    self.assertEqual(messages[:2], json.loads(first[:first.rindex("\n(")]))

  def test_memory_budget(self):
    large = self.program("memory_budget", 300)
    self.assertIn("512 tokens with a cache in int8", large)
    small = self.program("memory_budget", 15)
    numbers = [int(n) for n in re.findall(r"(?:session|conversation) +(\d+) bytes", small)]
    self.assertLessEqual(sum(numbers), 15_000_000)
    with self.assertRaisesRegex(AssertionError, "not even 64 tokens"):
      self.program("memory_budget", 1)

  def test_search(self):
    vectors = self.folder / "vectors.arn"
    support.run(support.options.build / "bin/arenite-convert",
                support.options.source / "models/fable/fable-2m", "-o", vectors, "--weights",
                "int8", "--pooling", "mean")
    lines = self.folder / "lines.txt"
    lines.write_text("The dog ran to the park.\nA bird sat in the tree.\n")
    shown = support.run(self.built / "search", vectors, lines, "A bird sat in the tree.")
    self.assertRegex(shown, r"^[0-9.]+ A bird sat in the tree\.$")
    with self.assertRaisesRegex(AssertionError, "no pooling"):
      support.run(self.built / "search", self.bundle, lines, "x")

  def test_dictate(self):
    source, checkpoint = support.options.source, self.folder / "whisper"
    write_checkpoint(
        json.loads((source / "tests/golden/data/speech/multilingual.json").read_text()), checkpoint)
    shutil.copy(source / "tests/unit/text/data/byte_level_added/tokenizer.json", checkpoint)
    bundle = self.folder / "whisper.arn"
    support.run(support.options.build / "bin/arenite-convert", checkpoint, "-o", bundle)
    raw = b"".join(round(x * 32767).to_bytes(2, "little", signed=True) for x in signal(20000))

    def dictate(*arguments):
      return subprocess.run([self.built / "dictate", bundle, *arguments], input=raw,
                            capture_output=True, check=False)

    done = dictate("de")
    self.assertEqual(0, done.returncode, done.stderr)
    self.assertEqual(b"language: de\n", done.stderr)
    self.assertRegex(done.stdout.decode(), r"(?m)^ +[0-9]\.[0-9]{2} +[0-9]\.[0-9]{2}")
    self.assertIn(b"'tlh'", dictate("tlh").stderr)

  def test_see(self):
    bundle, picture = self.folder / "see.arn", self.folder / "image.ppm"
    write_vision_checkpoint(self.folder / "vision")
    support.run(support.options.build / "bin/arenite-convert", self.folder / "vision", "-o", bundle)
    picture.write_bytes(b"P6\n64 40\n255\n" + b"".join(golden_image(64, 40)))
    done = subprocess.run([self.built / "see", bundle, picture, "What is an <image>?"],
                          capture_output=True, check=False)
    self.assertEqual(0, done.returncode, done.stderr)
    self.assertRegex(done.stdout, rb"tokens, 112 of the image among the 1[5-9]\d of the prompt")
    picture.write_bytes(b"P6\n64 40\n255\n")
    with self.assertRaisesRegex(AssertionError, "cut off"):
      support.run(self.built / "see", bundle, picture, "What?")
    with self.assertRaisesRegex(AssertionError, "takes no images"):
      support.run(self.built / "see", self.bundle, picture, "What?")


if __name__ == "__main__":
  support.main(rest)
