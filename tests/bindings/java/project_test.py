"""Checks that the Gradle project's parts match by name, because Gradle cannot run here."""

import argparse
import pathlib
import re
import subprocess
import sys
import unittest
import xml.etree.ElementTree

ANDROID = "{http://schemas.android.com/apk/res/android}"
parser = argparse.ArgumentParser()
parser.add_argument("--source", type=pathlib.Path, required=True)
parser.add_argument("--jni", type=pathlib.Path, required=True)
parser.add_argument("--nm", required=True)
parser.add_argument("--readelf", required=True)
options, rest = parser.parse_known_args()

JAVA = options.source / "bindings/java"
LIBRARY = JAVA / "arenite-android/src/main"
EXAMPLE = JAVA / "example/src/main"


def run(*command):
  return subprocess.run([str(word) for word in command], check=True, capture_output=True,
                        text=True).stdout


class ProjectTest(unittest.TestCase):
  def test_library_shows_the_native_methods_and_nothing_else(self):
    declared = set(re.findall(r"native [\w\[\]]+ (\w+)\(",
                              (LIBRARY / "java/org/arenite/Native.java").read_text()))
    shown = {line.split()[-1] for line in
             run(options.nm, "-D", "--defined-only", options.jni).splitlines()}
    self.assertGreater(len(declared), 40)
    self.assertEqual({"Java_org_arenite_Native_" + name for name in declared}, shown)

  def test_library_for_pages_of_16_kib(self):
    loads = [line.split() for line in run(options.readelf, "-lW", options.jni).splitlines()
             if line.strip().startswith("LOAD")]
    self.assertGreater(len(loads), 1)
    for load in loads:
      self.assertEqual(0, int(load[-1], 16) % 16384)

  def test_kept_names_are_there(self):
    rules = (JAVA / "arenite-android/consumer-rules.pro").read_text()
    kept = set(re.findall(r"org\.arenite\.(\w+)", rules))
    for name in kept:
      self.assertTrue((LIBRARY / f"java/org/arenite/{name}.java").is_file(), name)
    code = "".join(path.read_text() for path in (LIBRARY / "cpp").iterdir()
                   if path.suffix in (".cc", ".h"))
    used = set(re.findall(r"k(\w+)Fields\[\]", code))
    used |= set(re.findall(r'FindClass\("org/arenite/(\w+)"\)', code))
    self.assertLessEqual(used, kept)

  def test_example_uses_resources_that_are_there(self):
    used = {match for path in EXAMPLE.rglob("*.java")
            for match in re.findall(r"\bR\.(\w+)\.(\w+)", path.read_text())}
    ids, there = set(), set()
    for path in (EXAMPLE / "res").rglob("*.xml"):
      tree = xml.etree.ElementTree.parse(path)
      there.add((path.parent.name, path.stem))
      for element in tree.iter():
        value = element.get(ANDROID + "id", "")
        if value.startswith("@+id/"):
          ids.add(("id", value[5:]))
        for text in element.attrib.values():
          if text.startswith("@string/"):
            ids.add(("wanted", text[8:]))
    self.assertTrue(used)
    self.assertLessEqual(used, ids | there)
    strings = {e.get("name") for e in
               xml.etree.ElementTree.parse(EXAMPLE / "res/values/strings.xml").iter("string")}
    self.assertLessEqual({name for kind, name in ids if kind == "wanted"}, strings)

  def test_manifest_names_the_activity(self):
    tree = xml.etree.ElementTree.parse(EXAMPLE / "AndroidManifest.xml")
    (activity,) = tree.iter("activity")
    name = activity.get(ANDROID + "name")
    self.assertTrue((EXAMPLE / f"java/org/arenite/example{name.replace('.', '/')}.java").is_file())
    xml.etree.ElementTree.parse(LIBRARY / "AndroidManifest.xml")


if __name__ == "__main__":
  unittest.main(argv=[sys.argv[0]] + rest)
