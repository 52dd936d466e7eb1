"""Checks for one set of SIMD targets in the whole program.

Highway's inline functions that index kernel tables depend on the set (HWY_DISABLED_TARGETS and the
like). Two sets in one program give one function two bodies: without optimisation the linker keeps
either, and indexes a table with the mask of another. So only kernels/cpu/simd/targets.h defines
the set, and it is included before any Highway header.
"""

import re

import source_tree

SET = "kernels/cpu/simd/targets.h"
DEFINES = re.compile(r"(?:#[ \t]*(?:define|undef)[ \t]+|-D)"
                     r"(HWY_(?:DISABLED_TARGETS|BASELINE_\w+|COMPILE_\w+|WANT_\w+))\b")


def check(root):
  problems = []
  for path in source_tree.files(root, source_tree.EVERYTHING, source_tree.CODE):
    if str(path) == SET or path.parts[:2] == ("tests", "lint"):
      continue
    text = source_tree.read(root, path)
    for match in DEFINES.finditer(text):
      number = text.count("\n", 0, match.start()) + 1
      problems.append(f"{path}:{number}: {match.group(1)}: the set of SIMD targets is in {SET}.")
  for path in source_tree.files(root, source_tree.LIBRARY, (".cc",)):
    has_set = False
    for number, _, header in source_tree.includes(source_tree.read(root, path)):
      has_set |= header == SET
      if header.startswith("hwy/") and not has_set:
        problems.append(f"{path}:{number}: {header}: include {SET} before it.")
        break
  return problems


if __name__ == "__main__":
  source_tree.main(check)
