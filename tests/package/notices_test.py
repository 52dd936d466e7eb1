"""Checks that every installation and package contains the licences of its dependencies.

Each line of deps.lock needs a licence, otherwise configuring the build fails.
"""

import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

FILES = ("LICENSE", "THIRD_PARTY_NOTICES.txt", "arenite.spdx.json")
options = None


def pinned():
  """Returns name -> (version, sha256) of the lines of deps.lock."""
  lines = (options.source / "toolchains/deps.lock").read_text().splitlines()
  fields = [line.split() for line in lines if line and not line.startswith("#")]
  return {name: (version, sha256) for name, version, sha256, *_ in fields}


def licences():
  """Returns name -> (expression, place, files) of the lines of licences.txt."""
  lines = (options.source / "toolchains/licences.txt").read_text().splitlines()
  fields = [[field.strip() for field in line.split("|")]
            for line in lines if line and not line.startswith("#")]
  return {name: (spdx, place, files.split()) for name, spdx, place, files in fields}


def tables():
  """Returns name -> (version, expression, place, file) of the lines of tables.txt."""
  lines = (options.source / "toolchains/tables.txt").read_text().splitlines()
  fields = [[field.strip() for field in line.split("|")]
            for line in lines if line and not line.startswith("#")]
  return {name: (version, spdx, place, file)
          for name, version, spdx, place, _, _, file, _ in fields}


class NoticesTest(unittest.TestCase):
  def setUp(self):
    folder = tempfile.TemporaryDirectory()
    self.addCleanup(folder.cleanup)
    self.root = pathlib.Path(folder.name)

  def generate(self, source, out):
    return subprocess.run(
        ["cmake", f"-DOUT={out}", f"-DARENITE_DEPS_DIR={options.deps}", "-P",
         source / "toolchains/notices.cmake"], capture_output=True, text=True)

  def copy_of_the_sources(self):
    source = self.root / "source"
    (source / "toolchains").mkdir(parents=True)
    for path in ("CMakeLists.txt", "LICENSE", "toolchains/notices.cmake", "toolchains/unpack.cmake",
                 "toolchains/deps.lock", "toolchains/licences.txt", "toolchains/tables.txt"):
      shutil.copy(options.source / path, source / path)
    shutil.copytree(options.source / "toolchains/licences", source / "toolchains/licences")
    return source

  def test_every_dependency_has_a_licence(self):
    self.assertEqual(set(pinned()), set(licences()))
    for name, (spdx, place, files) in licences().items():
      with self.subTest(name):
        self.assertRegex(spdx, r"^[\w.+-]+( (AND|OR|WITH) [\w.+-]+)*$")
        self.assertIn(place, ("library", "programs", "tests"))
        for file in files:
          self.assertGreater((options.deps / name / file).stat().st_size, 300)

  def test_notices_have_the_texts_of_what_is_built_in(self):
    done = self.generate(options.source, self.root / "out")
    self.assertEqual(done.returncode, 0, done.stderr)
    notices = (self.root / "out/THIRD_PARTY_NOTICES.txt").read_text()
    for name, (spdx, place, files) in licences().items():
      heading = f"{name} {pinned()[name][0]}, in the {place}: {spdx}\n"
      self.assertEqual(heading in notices, place != "tests", name)
      for file in files:
        text = (options.deps / name / file).read_text().strip()
        if place != "tests":
          self.assertIn(text, notices, name)
    for name, (version, spdx, place, file) in tables().items():
      self.assertIn(f"{name} {version}, in the {place}: {spdx}\n", notices)
      self.assertIn((options.source / "toolchains" / file).read_text().strip(), notices, name)

  def test_bill_of_materials_has_every_dependency(self):
    self.generate(options.source, self.root / "out")
    bill = json.loads((self.root / "out/arenite.spdx.json").read_text())
    self.assertEqual((bill["spdxVersion"], bill["dataLicense"], bill["SPDXID"]),
                     ("SPDX-2.3", "CC0-1.0", "SPDXRef-DOCUMENT"))
    self.assertRegex(bill["creationInfo"]["created"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
    packages = {package["name"]: package for package in bill["packages"]}
    self.assertEqual(set(packages), set(pinned()) | set(tables()) | {"arenite"})
    for name, (version, spdx, *_) in tables().items():
      self.assertEqual((packages[name]["versionInfo"], packages[name]["licenseDeclared"]),
                       (version, spdx))
    for name, (version, sha256) in pinned().items():
      with self.subTest(name):
        package = packages[name]
        self.assertEqual(package["versionInfo"], version)
        self.assertEqual(package["checksums"][0]["checksumValue"], sha256)
        self.assertEqual(package["licenseDeclared"], licences()[name][0])
        (reference,) = package["externalRefs"]
        self.assertRegex(reference["referenceLocator"], r"^pkg:github/[^/]+/[^@]+@")
    ids = {package["SPDXID"] for package in bill["packages"]} | {"SPDXRef-DOCUMENT"}
    related = set()
    for relation in bill["relationships"]:
      ends = {relation["spdxElementId"], relation["relatedSpdxElement"]}
      self.assertLessEqual(ends, ids)
      related |= ends
    self.assertEqual(related, ids)

  def test_refuses_a_dependency_without_a_licence(self):
    source = self.copy_of_the_sources()
    with open(source / "toolchains/deps.lock", "a") as file:
      file.write("gravel 1.0 0123 gravel gravel_1.0.orig.tar.xz https://example.org/gravel v1.0\n")
    done = self.generate(source, self.root / "out")
    self.assertNotEqual(done.returncode, 0)
    self.assertRegex(re.sub(r"\s+", " ", done.stderr), "no line for gravel of deps.lock")
    with open(source / "toolchains/licences.txt", "a") as file:
      file.write("gravel | MIT | library | LICENSE\n")
    done = self.generate(source, self.root / "out")
    self.assertNotEqual(done.returncode, 0)
    self.assertIn("gravel/LICENSE, the licence of gravel", re.sub(r"\s+", " ", done.stderr))

  def test_refuses_a_table_without_a_licence(self):
    source = self.copy_of_the_sources()
    with open(source / "toolchains/tables.txt", "a") as file:
      file.write("sand | 1 | MIT | programs | https://example.org/sand | v1 | licences/sand.txt | "
                 "grains\n")
    done = self.generate(source, self.root / "out")
    self.assertNotEqual(done.returncode, 0)
    self.assertRegex(re.sub(r"\s+", " ", done.stderr), "the line of sand needs .*sand.txt")

  def test_is_the_same_every_time(self):
    texts = []
    for name in ("first", "second"):
      self.generate(options.source, self.root / name)
      texts.append([(self.root / name / file).read_bytes() for file in FILES])
    self.assertEqual(texts[0], texts[1])

  def in_archive(self, archive, folders):
    with zipfile.ZipFile(archive) as opened:
      for name in FILES:
        inside = [path for path in opened.namelist() if re.search(folders + re.escape(name), path)]
        self.assertEqual(len(inside), 1, (archive, name))
        self.assertEqual(opened.read(inside[0]), (options.build / "notices" / name).read_bytes())

  def test_wheel_has_them(self):
    wheels = list((options.build / "python").glob("*.whl"))
    self.assertEqual(len(wheels), 1)
    self.in_archive(wheels[0], r"^arenite-[\d.]+\.dist-info/(licenses|sboms)/")

  def test_jar_has_them(self):
    jar = options.build / "java/arenite.jar"
    if not jar.exists():
      self.skipTest("there is no JDK: toolchains/get_deps.sh --install-bindings gets one")
    self.in_archive(jar, "^META-INF/arenite/")

  def test_aar_is_given_them(self):
    # Gradle cannot run here. Checks that the command it runs is present and correct.
    gradle = (options.source / "bindings/java/arenite-android/build.gradle.kts").read_text()
    self.assertIn('"-DOUT=${notices.get().asFile}/META-INF/arenite", "-P"', gradle)
    self.assertIn("resources.srcDir(notices)", gradle)
    toolchains = re.search(r'val toolchains = rootProject\.file\("(.*?)"\)', gradle).group(1)
    self.assertTrue((options.source / "bindings/java" / toolchains / "notices.cmake").is_file())


if __name__ == "__main__":
  parser = argparse.ArgumentParser()
  for name in ("source", "build", "deps"):
    parser.add_argument("--" + name, required=True, type=pathlib.Path)
  options, rest = parser.parse_known_args()
  unittest.main(argv=[sys.argv[0]] + rest)
