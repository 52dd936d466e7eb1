"""Checks that the library has no static constructors and no variables that outlive a call. Searches
the object files of our archives for initialisers and for writable data.

  static_state.py --objdump PROGRAM ARCHIVE...
"""

import argparse
import re
import subprocess
import sys

# Writable section names in `objdump -t`. Constants that contain addresses are in .data.rel.ro,
# which is read-only after loading.
WRITABLE = re.compile(r"^\.(data|bss|tdata|tbss)(\.(?!rel\.ro)|$)")
# Variables that outlive a call, by the end of their names, and why.
ALLOWED = {
    "6vulkan12_GLOBAL__N_19g_libraryE": "docs/decisions/0020-vulkan-drivers-stay-loaded.md",
    "6vulkan12_GLOBAL__N_16g_keptE": "docs/decisions/0020-vulkan-drivers-stay-loaded.md",
    "3cpu13ChooseTargetsEvE5known": "docs/decisions/0028-cpu-detected-once.md",
}
INITIALISER = re.compile(r"^\.(init_array|ctors|preinit_array)")


def problems_of(archive, symbol_table):
  """Returns the problems in the output of `objdump -t` for one archive."""
  problems = []
  member = "?"
  for line in symbol_table.splitlines():
    heading = re.match(r"^(\S+):\s+file format", line)
    if heading:
      member = heading.group(1)
      continue
    #  value  flags(7)  section  size  name
    symbol = re.match(r"^[0-9a-f]+ (.{7}) (\S+)\s+([0-9a-f]+)\s+(?:\.hidden )?(\S+)$", line)
    if not symbol:
      continue
    flags, section, _, name = symbol.groups()
    if INITIALISER.match(section):
      problems.append(f"{archive}({member}): has a static constructor ({section}).")
    elif WRITABLE.match(section) and "O" in flags and not name.endswith(tuple(ALLOWED)):
      problems.append(
          f"{archive}({member}): '{name}' is a variable ({section}): pass state, or make it const.")
  return problems


def main():
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument("--objdump", default="objdump")
  parser.add_argument("archives", nargs="+")
  arguments = parser.parse_args()
  problems = []
  for archive in arguments.archives:
    table = subprocess.run(
        [arguments.objdump, "-t", archive], capture_output=True, text=True, check=True).stdout
    problems += problems_of(archive, table)
  for problem in problems:
    print(problem)
  print(f"{len(arguments.archives)} archive(s), {len(problems)} problem(s)")
  return 1 if problems else 0


if __name__ == "__main__":
  sys.exit(main())
