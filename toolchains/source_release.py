#!/usr/bin/env python3
"""Makes a source release, which builds without a network: the tracked files and, in archives/, the
pinned dependencies of deps.lock.

    toolchains/source_release.py --out FOLDER

Writes FOLDER/arenite-VERSION.tar.gz and its .sha256, and prints the former's path. The same file is
Python's source distribution. CMake unpacks the archives and checks them against deps.lock
(toolchains/unpack.cmake), so FetchContent, Gradle and pip need one step. Needs a git checkout, and
the archives that toolchains/get_deps.sh downloaded, or a folder with them in ARENITE_ARCHIVES.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import os
import pathlib
import re
import subprocess
import sys
import tarfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "bindings/python"))

import wheel_backend  # noqa: E402

# At the top of the release, as PEP 517 requires; the backend stays where it is.
PYPROJECT = """[build-system]
requires = []
build-backend = "wheel_backend"
backend-path = ["bindings/python"]
"""


def version() -> str:
  text = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
  found = re.search(r"^project\(arenite VERSION ([\d.]+)", text, re.MULTILINE)
  assert found, "CMakeLists.txt names no version"
  return found.group(1)


def archives() -> dict[str, bytes]:
  """Returns the archives of deps.lock by name. Exits if one is missing or is another."""
  found = {}
  for line in (ROOT / "toolchains/deps.lock").read_text(encoding="utf-8").splitlines():
    if not line.strip() or line.startswith("#"):
      continue
    sha256, name = line.split()[2], line.split()[4].partition(":")[0]
    folders = [ROOT / ".deps/downloads", ROOT / "archives"]
    if os.environ.get("ARENITE_ARCHIVES"):
      folders.append(pathlib.Path(os.environ["ARENITE_ARCHIVES"]))
    paths = [folder / name for folder in folders if (folder / name).is_file()]
    if not paths:
      raise SystemExit(f"{name} is in none of {', '.join(map(str, folders))}: run "
                       "toolchains/get_deps.sh, or name a folder with it in ARENITE_ARCHIVES.")
    found[name] = paths[0].read_bytes()
    if hashlib.sha256(found[name]).hexdigest() != sha256:
      raise SystemExit(f"{paths[0]} does not have the sha256 of toolchains/deps.lock.")
  return found


def make(out: pathlib.Path) -> pathlib.Path:
  name = f"arenite-{version()}"
  tracked = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z"], check=True,
                           stdout=subprocess.PIPE, text=True).stdout.split("\0")
  files: dict[str, bytes] = {"archives/" + path: data for path, data in archives().items()}
  files["pyproject.toml"] = PYPROJECT.encode()
  files["PKG-INFO"] = wheel_backend.metadata().encode()
  executable = set()
  for path in filter(None, tracked):
    files[path] = (ROOT / path).read_bytes()
    if os.access(ROOT / path, os.X_OK):
      executable.add(path)
  out.mkdir(parents=True, exist_ok=True)
  release = out / f"{name}.tar.gz"
  with open(release, "wb") as file, \
      gzip.GzipFile("", "wb", 6, file, mtime=0) as packed, \
      tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
    for path in sorted(files):
      entry = tarfile.TarInfo(f"{name}/{path}")
      entry.size = len(files[path])
      entry.mode = 0o755 if path in executable else 0o644
      archive.addfile(entry, io.BytesIO(files[path]))
  digest = hashlib.sha256(release.read_bytes()).hexdigest()
  (out / f"{name}.tar.gz.sha256").write_text(f"{digest}  {release.name}\n", encoding="utf-8")
  return release


if __name__ == "__main__":
  parser = argparse.ArgumentParser(description="Makes a source release.")
  parser.add_argument("--out", type=pathlib.Path, required=True)
  print(make(parser.parse_args().out))
