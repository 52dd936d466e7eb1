"""Builds the wheel with only the standard library.

    python3 wheel_backend.py --library LIBARENITE.so --out FOLDER

Also the build backend that pyproject.toml names (PEP 517), so `pip wheel bindings/python` works
too, without a network. Takes the library from ARENITE_LIBRARY or `-C library=PATH`, else
build/release/lib/libarenite.so; and the licences from ARENITE_NOTICES, `-C notices=FOLDER` or
--notices, else from the library's build tree. An installation has them in share/doc/arenite.

The wheel suits every Python 3 on the machine type that the library was built for.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import os
import pathlib
import re
import struct
import sys
import zipfile
from typing import Any, Optional

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
MACHINES = {62: "x86_64", 183: "aarch64", 40: "armv7l", 243: "riscv64"}  # ELF's e_machine
# Files that toolchains/notices.cmake writes, and their folders in the wheel's dist-info (PEP 639,
# PEP 770).
NOTICES = {"LICENSE": "licenses", "THIRD_PARTY_NOTICES.txt": "licenses",
           "arenite.spdx.json": "sboms"}
DATE = (1980, 1, 1, 0, 0, 0)  # fixed, for reproducible wheels


class UnsupportedOperation(Exception):
  """PEP 517: this backend builds no source distributions."""


def _version() -> str:
  text = (HERE / "arenite/_constants.py").read_text(encoding="utf-8")
  found = dict(re.findall(r"^ARN_VERSION_(\w+) = (\d+)$", text, re.MULTILINE))
  return ".".join(found[part] for part in ("MAJOR", "MINOR", "PATCH"))


def _platform(library: bytes, path: pathlib.Path) -> str:
  machine = struct.unpack_from("<H", library, 18)[0] if library[:4] == b"\x7fELF" else None
  if machine not in MACHINES:
    raise SystemExit(f"{path} is not a library for a supported machine.")
  return "linux_" + MACHINES[machine]


def _metadata(version: str) -> str:
  readme = (HERE / "README.md").read_text(encoding="utf-8")
  return (f"Metadata-Version: 2.1\nName: arenite\nVersion: {version}\n"
          "Summary: Language models on the device, in memory whose size is known beforehand\n"
          "License: Apache-2.0\nLicense-File: LICENSE\nLicense-File: THIRD_PARTY_NOTICES.txt\n"
          "Requires-Python: >=3.9\n"
          f"Description-Content-Type: text/markdown\n\n{readme}")


def _notices_beside(library: pathlib.Path) -> pathlib.Path:
  """Returns the licences in the library's build tree."""
  return library.resolve().parents[1] / "notices"


def make_wheel(library: pathlib.Path, notices: pathlib.Path, out: pathlib.Path) -> str:
  """Writes the wheel into the folder `out` and returns its name."""
  if not library.is_file():
    raise SystemExit(f"{library} is missing: build the target arenite_shared first.")
  for name in NOTICES:
    if not (notices / name).is_file():
      raise SystemExit(f"{notices / name} is missing: name the folder of the licences.")
  binary, version = library.read_bytes(), _version()
  tag = f"py3-none-{_platform(binary, library)}"
  info = f"arenite-{version}.dist-info"
  files = {f"arenite/{path.name}": path.read_bytes()
           for path in sorted((HERE / "arenite").iterdir()) if path.suffix in (".py", ".typed")}
  files["arenite/libarenite.so"] = binary
  for name, folder in NOTICES.items():
    files[f"{info}/{folder}/{name}"] = (notices / name).read_bytes()
  files[f"{info}/METADATA"] = _metadata(version).encode()
  files[f"{info}/WHEEL"] = (f"Wheel-Version: 1.0\nGenerator: arenite\nRoot-Is-Purelib: false\n"
                            f"Tag: {tag}\n").encode()
  record = ""
  for name, data in files.items():
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    record += f"{name},sha256={digest},{len(data)}\n"
  files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()
  out.mkdir(parents=True, exist_ok=True)
  wheel = f"arenite-{version}-{tag}.whl"
  with zipfile.ZipFile(out / wheel, "w", zipfile.ZIP_DEFLATED) as archive:
    for name, data in files.items():
      entry = zipfile.ZipInfo(name, DATE)
      entry.compress_type = zipfile.ZIP_DEFLATED
      entry.external_attr = 0o644 << 16
      archive.writestr(entry, data)
  return wheel


# ---- PEP 517 -------------------------------------------------------------------------------------


def build_wheel(wheel_directory: str, config_settings: Optional[dict[str, Any]] = None,
                metadata_directory: Optional[str] = None) -> str:
  def named(setting: str, otherwise: pathlib.Path) -> pathlib.Path:
    path = ((config_settings or {}).get(setting)
            or os.environ.get(f"ARENITE_{setting.upper()}"))
    return pathlib.Path(path) if path else otherwise

  library = named("library", ROOT / "build/release/lib/libarenite.so")
  notices = named("notices", _notices_beside(library))
  return make_wheel(library, notices, pathlib.Path(wheel_directory))


def build_sdist(sdist_directory: str, config_settings: Optional[dict[str, Any]] = None) -> str:
  raise UnsupportedOperation("source distributions are not supported")


if __name__ == "__main__":
  parser = argparse.ArgumentParser(description="Makes the Python wheel.")
  parser.add_argument("--library", type=pathlib.Path, required=True)
  parser.add_argument("--notices", type=pathlib.Path)
  parser.add_argument("--out", type=pathlib.Path, required=True)
  arguments = parser.parse_args()
  notices_folder = arguments.notices or _notices_beside(arguments.library)
  print(arguments.out / make_wheel(arguments.library, notices_folder, arguments.out))
  sys.exit(0)
