"""Lists the symbols that archives need and Android lacks at an API level.

  android_symbols.py --bionic DIR --api 24 --arch arm64|arm --nm NM ARCHIVE...

Reads what bionic exports from its version scripts (libc/libc.map.txt, libm/libm.map.txt,
libdl/libdl.map.txt under DIR). Prints, one per line, the symbols that the archives need and that
are defined neither by them nor by bionic at that level, liblog, the C++ runtime or the compiler.
Exits with 1 if there are any.
"""

import argparse
import os
import re
import subprocess
import sys

# In the NDK's liblog, not in bionic; cpuinfo links it. Present since API 3.
LIBLOG = {"__android_log_assert", "__android_log_print", "__android_log_vprint",
          "__android_log_write"}
MAPS = ("libc/libc.map.txt", "libm/libm.map.txt", "libdl/libdl.map.txt")
CODENAMES = {"M": 23, "N": 24, "O": 26, "P": 28, "Q": 29, "R": 30, "S": 31, "T": 33, "U": 34,
             "V": 35}
# In the NDK these come from libc++_static, libunwind and compiler-rt, not from the system. C++
# runtime symbols are matched by mangled prefix, because the NDK's inline namespace differs.
RUNTIME = re.compile(r"^(_ZN?K?S[tabdios]|_ZNK?St|_ZTVN10__cxxabiv|_ZT[ISV]S|_Zn[wa]|_Zd[la]|"
                     r"__cxa_|__gxx_|_Unwind_|__dynamic_cast$|"
                     r"__aeabi_|__aarch64_(cas|swp|ld|have)|_GLOBAL_OFFSET_TABLE_$|__stack_chk_|"
                     r"__(u?div|u?mod|mul|ash[lr]|lshr|add|sub|cmp|neg|fix|float|extend|trunc|pop|"
                     r"clz|ctz|clear_cache)\w{0,8}$|__dso_handle$|__emutls_)")


def level(text):
  return CODENAMES[text] if text in CODENAMES else int(text) if text.isdigit() else 10**6


def is_there(tags, api, arch):
  """True if a version script entry with these tags exists at an API level on an architecture."""
  tags = tags.split()
  if any(tag in ("platform-only", "apex", "systemapi", "llndk-only", "future") for tag in tags):
    return False
  architectures = {"arm", "arm64", "x86", "x86_64", "riscv64", "mips", "mips64"} & set(tags)
  if architectures and arch not in architectures:
    return False
  introduced = 0
  for tag in tags:
    if tag.startswith("introduced="):
      introduced = max(introduced, level(tag.split("=")[1]))
  for tag in tags:
    if tag.startswith(f"introduced-{arch}="):
      introduced = level(tag.split("=")[1])
  return introduced <= api


def exported(map_text, api, arch):
  """Returns the symbols that a version script exports to apps."""
  names, version_is_there, is_global = set(), False, False
  for line in map_text.split("\n"):
    code, _, tags = line.partition("#")
    code = code.strip()
    opened = re.match(r"^(\w+)\s*\{", code)
    if opened:
      is_public = not re.search(r"PRIVATE|PLATFORM|DEPRECATED", opened.group(1))
      version_is_there, is_global = is_public and is_there(tags, api, arch), True
    elif code.startswith("}"):
      version_is_there = False
    elif code == "global:":
      is_global = True
    elif code == "local:":
      is_global = False
    elif code.endswith(";") and version_is_there and is_global and is_there(tags, api, arch):
      names.add(code[:-1].strip())
  return names


def symbols(nm, archives, switch):
  listed = subprocess.run([nm, "-g", switch, *archives], capture_output=True, text=True, check=True)
  return {line.split()[-1] for line in listed.stdout.split("\n")
          if len(line.split()) >= 2 and not line.endswith(":")}


def missing(needed, defined, names):
  return sorted(s for s in needed - defined - names - LIBLOG if not RUNTIME.match(s))


def main():
  parser = argparse.ArgumentParser()
  parser.add_argument("--bionic", required=True)
  parser.add_argument("--api", type=int, default=24)
  parser.add_argument("--arch", choices=("arm64", "arm", "x86_64"), required=True)
  parser.add_argument("--nm", default="nm")
  parser.add_argument("archives", nargs="+")
  options = parser.parse_args()
  names = set()
  for path in MAPS:
    with open(os.path.join(options.bionic, path), encoding="utf-8") as f:
      names |= exported(f.read(), options.api, options.arch)
  needed = symbols(options.nm, options.archives, "--undefined-only")
  defined = symbols(options.nm, options.archives, "--defined-only")
  found = missing(needed, defined, names)
  for symbol in found:
    print(f"{symbol}: not in Android's API {options.api} for {options.arch}")
  if not found:
    print(f"{len(needed - defined)} symbols from outside, all in Android's API {options.api} for "
          f"{options.arch}")
  return 1 if found else 0


if __name__ == "__main__":
  sys.exit(main())
