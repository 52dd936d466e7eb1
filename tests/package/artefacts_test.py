"""Makes the packages from what is built, and uses each in a root of its own. Compiles only the
example program.
"""

import argparse
import glob
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile

from package_support import run

PROMPT = "Once upon a time"
LICENCES = ("Apache License", "XNNPACK", "libsodium")  # of us, and of what is built in
options = None


class ArtefactsTest(unittest.TestCase):
  @classmethod
  def setUpClass(cls):
    cls.temporary = tempfile.TemporaryDirectory()
    cls.folder = pathlib.Path(cls.temporary.name)
    cls.packages = cls.folder / "packages"
    generators = "TGZ;DEB" if shutil.which("dpkg-deb") else "TGZ"
    run("cpack", "--config", options.build / "CPackConfig.cmake", "-G", generators, "-B",
        cls.packages)
    cls.bundle = cls.folder / "fable.arn"
    run(options.build / "bin/arenite-convert", options.source / "models/fable/fable-2m", "-o",
        cls.bundle)
    cls.story = run(options.build / "bin/arenite", "run", cls.bundle, "--prompt", PROMPT,
                    "--max-tokens", "256", "--context", "512", "--seed", "0").strip()

  @classmethod
  def tearDownClass(cls):
    cls.temporary.cleanup()

  def debs(self):
    if not shutil.which("dpkg-deb"):
      self.skipTest("this system has no dpkg-deb")
    return sorted(self.packages.glob("*.deb"))

  def tells_the_story(self, prefix, *flags):
    """Compiles the example against the package below `prefix`, by its pkg-config file."""
    found = run("pkg-config", "--cflags", "--libs", "arenite",
                PKG_CONFIG_LIBDIR=str(prefix / "lib/pkgconfig")).strip()
    program = self.folder / "story"
    # A shell reads it, as in a Makefile: a prefix may have a space.
    run("sh", "-c", f"'{options.cc}' '{options.source}/tools/example/story.c' {found} "
        f"{' '.join(flags)} -o '{program}'")
    told = run(program, self.bundle, PROMPT)
    self.assertEqual(told[len(PROMPT):].strip(), self.story)

  def test_debs_say_what_they_need(self):
    needs = {}
    for deb in self.debs():
      name, architecture, depends, version = (
          run("dpkg-deb", "-f", deb, field).strip()
          for field in ("Package", "Architecture", "Depends", "Version"))
      needs[name] = depends
      self.assertEqual(architecture == "all", name == "python3-arenite")
      self.assertRegex(deb.name, f"^{name}_{version}_{architecture}.deb$")
    self.assertLessEqual({"arenite", "libarenite0", "libarenite-dev", "python3-arenite"},
                         set(needs))
    self.assertRegex(needs["libarenite0"], r"libc6 \(>= 2\.\d+\)")
    self.assertRegex(needs["libarenite-dev"], r"^libarenite0 \(= [\d.]+\)$")
    self.assertRegex(needs["python3-arenite"], r"python3 .*libarenite0 \(>= [\d.]+\)")

  def test_debs_share_no_file_and_have_the_licences(self):
    owners = {}
    for deb in self.debs():
      root = self.folder / "one" / deb.name
      root.mkdir(parents=True)
      run("dpkg-deb", "-x", deb, root)
      for path in root.rglob("*"):
        if path.is_file():
          self.assertNotIn(path.relative_to(root), owners)
          owners[path.relative_to(root)] = deb.name
      (copyright_file,) = root.glob("usr/share/doc/*/copyright")
      for text in LICENCES:
        self.assertIn(text, copyright_file.read_text(), deb.name)
      self.assertTrue(copyright_file.with_name("arenite.spdx.json").is_file())

  def test_debs_together(self):
    root = self.folder / "root"
    for deb in self.debs():
      run("dpkg-deb", "-x", deb, root)
    usr = root / "usr"
    library = f"-Wl,-rpath,{usr}/lib"
    self.tells_the_story(usr, library)
    self.assertEqual(run(usr / "bin/arenite", "--version"),
                     run(options.build / "bin/arenite", "--version"))
    self.assertIn("DIR", run(usr / "bin/arenite-convert", "--help"))
    version = run(sys.executable, "-B", "-c", "import arenite; print(arenite.version())",
                  PYTHONPATH=str(usr / "lib/python3/dist-packages"),
                  LD_LIBRARY_PATH=str(usr / "lib"), ARENITE_LIBRARY="")
    self.assertRegex(version, r"^\(\d+, \d+, \d+\)")
    if shutil.which("javac") and (usr / "share/java/arenite.jar").exists():
      source = self.folder / "Version.java"
      source.write_text("class Version { public static void main(String[] a) throws Exception {"
                        " try (org.arenite.Model m = org.arenite.Model.open(a[0])) {"
                        " System.out.println(m.info().vocab); } } }")
      run("java", "-cp", usr / "share/java/arenite.jar", f"-Djava.library.path={usr}/lib/jni",
          source, self.bundle)

  def test_tarball_works_where_it_is_unpacked(self):
    (archive,) = self.packages.glob("*.tar.gz")
    folder = self.folder / "any where"
    with tarfile.open(archive) as opened:
      opened.extractall(folder)
    (prefix,) = folder.iterdir()
    self.assertEqual(prefix.name + ".tar.gz", archive.name)
    self.tells_the_story(prefix, f"'-Wl,-rpath,{prefix}/lib'")
    run(prefix / "bin/arenite", "--version")
    notices = (prefix / "share/doc/arenite/THIRD_PARTY_NOTICES.txt").read_text()
    self.assertIn("XNNPACK", notices)
    self.assertEqual(len(list((prefix / "share/arenite").glob("*.whl"))), 1)

  def test_wheel_is_for_other_systems_and_stripped(self):
    (wheel,) = (options.build / "python").glob("*.whl")
    versions = set(re.findall(r"GLIBC_(\d+)\.(\d+)\b", run(options.readelf, "-VW",
                                                          options.build / "lib/libarenite.so")))
    fits = max((int(major), int(minor)) for major, minor in versions) <= (2, 34)
    self.assertRegex(wheel.name, r"-py3-none-manylinux_2_34_\w+\.whl$" if fits else
                     r"-py3-none-linux_\w+\.whl$")
    with zipfile.ZipFile(wheel) as opened:
      opened.extract("arenite/libarenite.so", self.folder)
    sections = run(options.readelf, "-SW", self.folder / "arenite/libarenite.so")
    self.assertIn(".dynsym", sections)
    self.assertNotIn(".symtab", sections)

  def test_library_that_needs_a_newer_system_is_not_called_manylinux(self):
    sys.path.insert(0, str(options.source / "bindings/python"))
    import wheel_backend
    library = options.build / "lib/libarenite.so"
    data = library.read_bytes()
    newer = data.replace(b"\0GLIBC_2.34\0", b"\0GLIBC_2.99\0")
    if newer == data:
      self.skipTest("the library needs no GLIBC_2.34")
    self.assertRegex(wheel_backend._platform(newer, library), "^linux_")

  def release(self):
    if not (options.source / ".git").exists():
      self.skipTest("a source release is made in a git checkout")
    return pathlib.Path(run(sys.executable, "-B", options.source / "toolchains/source_release.py",
                            "--out", self.folder / "release").strip())

  def test_source_release(self):
    release = self.release()
    digest = hashlib.sha256(release.read_bytes()).hexdigest()
    self.assertEqual(release.with_name(release.name + ".sha256").read_text(),
                     f"{digest}  {release.name}\n")
    with tarfile.open(release) as opened:
      opened.extractall(self.folder / "unpacked")
    (root,) = (self.folder / "unpacked").iterdir()
    self.assertEqual(root.name + ".tar.gz", release.name)
    lock = (root / "toolchains/deps.lock").read_text().splitlines()
    pinned = [line.split() for line in lock if line and not line.startswith("#")]
    for _, _, sha256, _, archive, *_ in pinned:
      data = (root / "archives" / archive.partition(":")[0]).read_bytes()
      self.assertEqual(hashlib.sha256(data).hexdigest(), sha256, archive)
    self.assertRegex((root / "PKG-INFO").read_text(), r"(?m)^Name: arenite$")

    with self.subTest("a wheel of it, as pip makes one"):
      run(sys.executable, "-B", "-c", "import sys; sys.path.insert(0, 'bindings/python');"
          f"import os; os.chdir({str(root)!r}); sys.path[0] = os.path.abspath('bindings/python');"
          f"import wheel_backend; print(wheel_backend.build_wheel({str(self.folder / 'wheel')!r}))",
          ARENITE_LIBRARY=str(options.build / "lib/libarenite.so"))
      self.assertEqual(len(list((self.folder / "wheel").glob("arenite-*.whl"))), 1)

    # CMake unpacks all archives; a few of them show how.
    few = [line for line in lock if line.split()[0] in ("fxdiv", "isocline", "vulkan-headers")]
    (root / "toolchains/deps.lock").write_text("\n".join(few) + "\n")
    deps = self.folder / "deps"
    unpack = ["cmake", f"-DARENITE_DEPS_DIR={deps}", "-P", root / "toolchains/unpack.cmake"]
    with self.subTest("dependencies are those that get_deps.sh unpacks"):
      run(*unpack)
      for line in few:
        name, sha256 = line.split()[0], line.split()[2]
        self.assertEqual((deps / name / ".arenite-stamp").read_text().strip(), sha256)
        if (options.deps / name).is_dir():
          self.assertEqual(sorted(os.listdir(deps / name)), sorted(os.listdir(options.deps / name)))
      self.assertEqual(run(*unpack), "")  # nothing is left to do
    with self.subTest("a changed archive is refused"):
      shutil.rmtree(deps)
      (changed,) = glob.glob(str(root / "archives/fxdiv*"))
      with open(changed, "ab") as file:
        file.write(b"x")
      done = subprocess.run([str(part) for part in unpack], capture_output=True, text=True)
      self.assertNotEqual(done.returncode, 0)
      self.assertIn("does not have the sha256", " ".join(done.stderr.split()))


if __name__ == "__main__":
  parser = argparse.ArgumentParser()
  for name in ("source", "build", "deps"):
    parser.add_argument("--" + name, required=True, type=pathlib.Path)
  for name in ("cc", "readelf"):
    parser.add_argument("--" + name, required=True)
  options, rest = parser.parse_known_args()
  unittest.main(argv=[sys.argv[0]] + rest)
