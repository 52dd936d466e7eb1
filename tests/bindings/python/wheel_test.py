"""Builds the wheel without a network, installs it into an empty folder, and uses it without the
sources."""

import hashlib
import os
import sys
import unittest
import zipfile

import support

rest = support.parse_arguments()

STORY = """
import sys, arenite
with arenite.Model(sys.argv[1]) as model, model.session() as session:
  for piece in session.generate("Once upon a time", max_tokens=20):
    print(piece, end="", flush=True)
print("", arenite.__file__)
"""


class WheelTest(unittest.TestCase):
  def setUp(self):
    self.folder = support.temporary_folder()
    self.package = support.options.source / "bindings/python"

  def make(self, out):
    return support.run(sys.executable, "-B", self.package / "wheel_backend.py", "--library",
                       support.options.library, "--out", out).strip()

  def test_tells_a_story_where_it_is_installed(self):
    wheel = self.make(self.folder / "wheels")
    self.assertRegex(os.path.basename(wheel),
                     r"^arenite-\d+\.\d+\.\d+-py3-none-(many)?linux_\w+\.whl$")
    with zipfile.ZipFile(wheel) as archive:
      archive.extractall(self.folder / "site")
      record = archive.read(next(n for n in archive.namelist() if n.endswith("/RECORD"))).decode()
      self.assertEqual(set(archive.namelist()),
                       {line.split(",")[0] for line in record.splitlines()})
    told = support.run(sys.executable, "-B", "-c", STORY, support.convert(self.folder, "int8"),
                       PYTHONPATH=str(self.folder / "site"), ARENITE_LIBRARY="")
    self.assertIn(str(self.folder / "site"), told)
    self.assertGreater(len(told.split()), 12)

  def test_is_the_same_every_time(self):
    digests = []
    for name in ("first", "second"):
      with open(self.make(self.folder / name), "rb") as file:
        digests.append(hashlib.sha256(file.read()).hexdigest())
    self.assertEqual(digests[0], digests[1])

  def test_pip_makes_and_installs_it(self):
    try:
      import pip  # noqa: F401
    except ImportError:
      self.skipTest("pip is not installed")
    support.run(sys.executable, "-m", "pip", "wheel", "--no-index", "--no-deps", "-q", "-w",
                self.folder / "wheels", self.package)
    (wheel,) = (self.folder / "wheels").iterdir()
    support.run(sys.executable, "-m", "pip", "install", "--no-index", "-q", "--target",
                self.folder / "target", wheel)
    version = support.run(sys.executable, "-B", "-c", "import arenite; print(arenite.version())",
                          PYTHONPATH=str(self.folder / "target"), ARENITE_LIBRARY="")
    self.assertRegex(version, r"\(\d+, \d+, \d+\)")


if __name__ == "__main__":
  support.main(rest)
