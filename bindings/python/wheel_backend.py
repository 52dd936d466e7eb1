"""Builds the wheel with only the standard library.

    python3 wheel_backend.py --library LIBARENITE.so --out FOLDER [--strip STRIP]

Also the build backend that pyproject.toml names (PEP 517), so `pip wheel bindings/python` works
too, without a network. Takes the library from ARENITE_LIBRARY or `-C library=PATH`, else
build/release/lib/libarenite.so, else builds it with CMake; and the licences from ARENITE_NOTICES,
`-C notices=FOLDER` or --notices, else from the library's build tree. An installation has them in
share/doc/arenite. The source distribution is the source release (toolchains/source_release.py).

The wheel suits every Python 3 on the machine type that the library was built for. It is tagged
manylinux_2_34 if the library needs no newer symbols of glibc and libstdc++ (PEP 600).
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import os
import pathlib
import platform
import re
import shutil
import struct
import subprocess
import sys
import tempfile
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
# The newest symbol versions, and the libraries, of manylinux_2_34.
MANYLINUX = "manylinux_2_34"
NEWEST = {"GLIBC": (2, 34), "GLIBCXX": (3, 4, 29), "CXXABI": (1, 3, 13), "GCC": (7, 0, 0)}
LIBRARIES = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "libgcc_s.so.1",
             "libstdc++.so.6"}


def _version() -> str:
  text = (HERE / "arenite/_constants.py").read_text(encoding="utf-8")
  found = dict(re.findall(r"^ARN_VERSION_(\w+) = (\d+)$", text, re.MULTILINE))
  return ".".join(found[part] for part in ("MAJOR", "MINOR", "PATCH"))


class _Elf:
  """What a little-endian ELF library needs of others: names and symbol versions."""

  def __init__(self, data: bytes) -> None:
    self.data = data
    self.wide = data[4] == 2  # 64 bits
    self.needed: list[str] = []
    self.versions: set[str] = set()
    (headers,) = struct.unpack_from("<Q", data, 0x28) if self.wide else struct.unpack_from(
        "<I", data, 0x20)
    entry, n = struct.unpack_from("<2H", data, 0x3A if self.wide else 0x2E)
    sections = [self._section(headers + entry * i) for i in range(n)]
    for kind, offset, size, link in sections:
      if kind == 6:  # SHT_DYNAMIC
        self._read_dynamic(offset, size, sections[link][1])
      elif kind == 0x6FFFFFFE:  # SHT_GNU_verneed
        self._read_versions(offset, sections[link][1])

  def _section(self, at: int) -> tuple[int, int, int, int]:
    """Returns type, offset, size and link."""
    if self.wide:
      _, kind, _, _, offset, size, link = struct.unpack_from("<IIQQQQI", self.data, at)
    else:
      _, kind, _, _, offset, size, link = struct.unpack_from("<IIIIIII", self.data, at)
    return kind, offset, size, link

  def _string(self, at: int) -> str:
    return self.data[at:self.data.index(b"\0", at)].decode()

  def _read_dynamic(self, offset: int, size: int, strings: int) -> None:
    layout = "<qQ" if self.wide else "<iI"
    for tag, value in struct.iter_unpack(layout, self.data[offset:offset + size]):
      if tag == 1:  # DT_NEEDED
        self.needed.append(self._string(strings + value))

  def _read_versions(self, need: int, strings: int) -> None:
    while True:
      _, n, _, aux, following = struct.unpack_from("<HHIII", self.data, need)
      at = need + aux
      for _ in range(n):
        _, _, _, name, further = struct.unpack_from("<IHHII", self.data, at)
        self.versions.add(self._string(strings + name))
        at += further
      if following == 0:
        return
      need += following


def _too_new(elf: _Elf) -> list[str]:
  """Returns what the library needs beyond manylinux_2_34."""
  beyond = [name for name in elf.needed
            if name not in LIBRARIES and not name.startswith("ld-linux")]
  for version in sorted(elf.versions):
    family, _, number = version.partition("_")
    if not re.fullmatch(r"[\d.]+", number):
      beyond.append(version)
    elif tuple(map(int, number.split("."))) > NEWEST.get(family, (0,)):
      beyond.append(version)
  return beyond


def _platform(library: bytes, path: pathlib.Path) -> str:
  machine = struct.unpack_from("<H", library, 18)[0] if library[:4] == b"\x7fELF" else None
  if machine not in MACHINES:
    raise SystemExit(f"{path} is not a library for a supported machine.")
  beyond = _too_new(_Elf(library))
  if beyond:
    print(f"{path} needs {', '.join(beyond)}: the wheel is for this system only, not for "
          f"{MANYLINUX}.", file=sys.stderr)
  return ("linux_" if beyond else MANYLINUX + "_") + MACHINES[machine]


def _stripped(library: pathlib.Path, strip: Optional[str]) -> bytes:
  """Returns the library without its symbol table, which is about a quarter of it."""
  if strip is None:
    return library.read_bytes()
  with tempfile.TemporaryDirectory() as folder:
    copy = pathlib.Path(folder) / library.name
    shutil.copy(library, copy)
    subprocess.run([strip, "--strip-all", str(copy)], check=True)
    return copy.read_bytes()


def metadata() -> str:
  """Returns the wheel's METADATA, which is also the source distribution's PKG-INFO."""
  readme = (HERE / "README.md").read_text(encoding="utf-8")
  return (f"Metadata-Version: 2.1\nName: arenite\nVersion: {_version()}\n"
          "Summary: Language models on the device, in memory whose size is known beforehand\n"
          "License: Apache-2.0\nLicense-File: LICENSE\nLicense-File: THIRD_PARTY_NOTICES.txt\n"
          "Requires-Python: >=3.9\n"
          f"Description-Content-Type: text/markdown\n\n{readme}")


def _notices_beside(library: pathlib.Path) -> pathlib.Path:
  """Returns the licences in the library's build tree."""
  return library.resolve().parents[1] / "notices"


def make_wheel(library: pathlib.Path, notices: pathlib.Path, out: pathlib.Path,
               strip: Optional[str] = None) -> str:
  """Writes the wheel into the folder `out` and returns its name."""
  if not library.is_file():
    raise SystemExit(f"{library} is missing: build the target arenite_shared first.")
  for name in NOTICES:
    if not (notices / name).is_file():
      raise SystemExit(f"{notices / name} is missing: name the folder of the licences.")
  binary, version = _stripped(library, strip), _version()
  tag = f"py3-none-{_platform(binary, library)}"
  info = f"arenite-{version}.dist-info"
  files = {f"arenite/{path.name}": path.read_bytes()
           for path in sorted((HERE / "arenite").iterdir()) if path.suffix in (".py", ".typed")}
  files["arenite/libarenite.so"] = binary
  for name, folder in NOTICES.items():
    files[f"{info}/{folder}/{name}"] = (notices / name).read_bytes()
  files[f"{info}/METADATA"] = metadata().encode()
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


def _build(folder: pathlib.Path) -> pathlib.Path:
  """Builds the shared library in `folder` and returns its path."""
  for command in (["cmake", "-S", str(ROOT), "-B", str(folder), "-DCMAKE_BUILD_TYPE=Release",
                   "-DARENITE_TESTS=OFF", "-DARENITE_TOOLS=OFF", "-DARENITE_HOST_TOOLS=OFF"],
                  ["cmake", "--build", str(folder), "--target", "arenite_shared", "--parallel"]):
    if subprocess.run(command, check=False).returncode != 0:
      raise SystemExit(f"{' '.join(command)} failed.")
  return folder / "lib/libarenite.so"


# ---- PEP 517 -------------------------------------------------------------------------------------


def get_requires_for_build_wheel(config_settings: Optional[dict[str, Any]] = None) -> list[str]:
  return [] if shutil.which("cmake") else ["cmake>=3.22"]


def build_wheel(wheel_directory: str, config_settings: Optional[dict[str, Any]] = None,
                metadata_directory: Optional[str] = None) -> str:
  def named(setting: str) -> Optional[pathlib.Path]:
    path = ((config_settings or {}).get(setting)
            or os.environ.get(f"ARENITE_{setting.upper()}"))
    return pathlib.Path(path) if path else None

  with tempfile.TemporaryDirectory() as folder:
    library = named("library")
    if library is None:
      built = ROOT / "build/release/lib/libarenite.so"
      library = built if built.is_file() else _build(pathlib.Path(folder))
    machine = struct.unpack_from("<H", library.read_bytes()[:20], 18)[0]
    strip = shutil.which("strip") if MACHINES.get(machine) == platform.machine() else None
    notices = named("notices") or _notices_beside(library)
    return make_wheel(library, notices, pathlib.Path(wheel_directory), strip)


def build_sdist(sdist_directory: str, config_settings: Optional[dict[str, Any]] = None) -> str:
  command = [sys.executable, "-B", str(ROOT / "toolchains/source_release.py"), "--out",
             sdist_directory]
  return os.path.basename(subprocess.run(command, check=True, stdout=subprocess.PIPE,
                                         text=True).stdout.strip())


if __name__ == "__main__":
  parser = argparse.ArgumentParser(description="Makes the Python wheel.")
  parser.add_argument("--library", type=pathlib.Path, required=True)
  parser.add_argument("--notices", type=pathlib.Path)
  parser.add_argument("--out", type=pathlib.Path, required=True)
  parser.add_argument("--strip", help="program that removes the symbol table")
  arguments = parser.parse_args()
  notices_folder = arguments.notices or _notices_beside(arguments.library)
  print(arguments.out / make_wheel(arguments.library, notices_folder, arguments.out,
                                   arguments.strip))
  sys.exit(0)
