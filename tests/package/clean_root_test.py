"""Installs the packages in a new system with nothing else (debootstrap), and uses them there.

Skipped (77) where there is no debootstrap, no root, or no mirror to fetch the system from.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile

from package_support import run

SKIPPED = 77
PROMPT = "Once upon a time"
# Packages of the system besides the smallest; the dependencies of ours are among them.
INCLUDE = "python3"
options = None


def make_root(folder):
  """Returns the root of a new system of this release, from the mirror that apt uses here."""
  sources = run("apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME) $(COMPONENT)")
  release = dict(line.split("=", 1) for line in
                 pathlib.Path("/etc/os-release").read_text().splitlines() if "=" in line)
  code_name = release.get("VERSION_CODENAME", "").strip('"')
  mirrors = [line.split()[0] for line in sources.splitlines()
             if line.split()[1:] == [code_name, "main"]]
  if not mirrors:
    raise unittest.SkipTest(f"apt has no mirror of {code_name or 'this release'}")
  root = folder / "system"
  done = subprocess.run(["debootstrap", "--variant=minbase", f"--include={INCLUDE}", code_name,
                         str(root), mirrors[0]], capture_output=True, text=True)
  if done.returncode != 0:
    raise unittest.SkipTest(f"debootstrap could not make a system: {done.stdout[-500:]}")
  return root


class CleanRootTest(unittest.TestCase):
  @classmethod
  def setUpClass(cls):
    cls.temporary = tempfile.TemporaryDirectory()
    folder = pathlib.Path(cls.temporary.name)
    cls.addClassCleanup(cls.temporary.cleanup)
    cls.packages = folder / "packages"
    run("cpack", "--config", options.build / "CPackConfig.cmake", "-G", "TGZ;DEB", "-B",
        cls.packages)
    bundle = folder / "fable.arn"
    model = options.source / "models/fable/fable-2m"
    run(options.build / "bin/arenite-convert", model, "-o", bundle)
    cls.arguments = ("--prompt", PROMPT, "--max-tokens", "64", "--seed", "0")
    cls.story = run(options.build / "bin/arenite", "run", bundle, *cls.arguments)
    cls.root = make_root(folder)
    shutil.copytree(model, cls.root / "fable-2m")

  def inside(self, *command, **environment):
    return run("chroot", self.root, "/usr/bin/env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
               "HOME=/root", *(f"{key}={value}" for key, value in environment.items()), *command)

  def put(self, path):
    shutil.copy(path, self.root / path.name)
    return "/" + path.name

  def uses(self, program_folder):
    """Converts and runs a checkpoint with the programs of a folder in the root."""
    self.inside(f"{program_folder}/arenite-convert", "/fable-2m", "-o", "/fable.arn")
    self.assertEqual(self.inside(f"{program_folder}/arenite", "run", "/fable.arn",
                                 *self.arguments), self.story)
    (self.root / "fable.arn").unlink()

  # In this order: the packages would serve what the others lack.
  def test_1_tarball(self):
    (archive,) = self.packages.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
      opened.extractall(self.root / "opt")
    (prefix,) = (self.root / "opt").iterdir()
    self.uses(f"/opt/{prefix.name}/bin")

  def test_2_wheel(self):
    (wheel,) = (options.build / "python").glob("*.whl")
    with zipfile.ZipFile(wheel) as opened:
      opened.extractall(self.root / "site")
    version = self.inside("python3", "-c", "import arenite; print(arenite.version())",
                          PYTHONPATH="/site")
    self.assertRegex(version, r"^\(\d+, \d+, \d+\)")

  def test_3_debs(self):
    debs = [self.put(path) for path in sorted(self.packages.glob("*.deb"))]
    self.inside("dpkg", "--install", *debs, DEBIAN_FRONTEND="noninteractive")
    self.uses("/usr/bin")
    self.assertRegex(self.inside("python3", "-c", "import arenite; print(arenite.version())"),
                     r"^\(\d+, \d+, \d+\)")
    installed = self.inside("dpkg-query", "-f", "${Package} ${Status}\n", "-W").splitlines()
    ours = [line for line in installed if "arenite" in line]
    self.assertEqual(len(debs), len([line for line in ours if line.endswith(" installed")]), ours)
    # Nothing is left behind by a removal.
    names = [line.split()[0] for line in ours]
    self.inside("dpkg", "--purge", *names, DEBIAN_FRONTEND="noninteractive")
    self.assertEqual(self.inside("find", "/usr", "/etc", "-name", "*arenite*"), "")


if __name__ == "__main__":
  parser = argparse.ArgumentParser()
  for name in ("source", "build"):
    parser.add_argument("--" + name, required=True, type=pathlib.Path)
  options, rest = parser.parse_known_args()
  for tool in ("debootstrap", "dpkg-deb", "apt-get"):
    if not shutil.which(tool):
      print(f"skipped: this system has no {tool}")
      sys.exit(SKIPPED)
  if os.geteuid() != 0:
    print("skipped: making a system needs root")
    sys.exit(SKIPPED)
  result = unittest.main(argv=[sys.argv[0]] + rest, exit=False).result
  sys.exit(SKIPPED if result.skipped and result.wasSuccessful() else not result.wasSuccessful())
