"""Checks that C++ is formatted as in .clang-format. toolchains/format.sh formats it.

clang-format's output changes between versions, so only the version named here counts.
"""

import re
import shutil
import subprocess

import source_tree

CLANG_FORMAT = "clang-format-14"


def check(root):
  if shutil.which(CLANG_FORMAT) is None:
    raise source_tree.Skip(
        f"{CLANG_FORMAT} is not installed: toolchains/get_deps.sh --install-lint gets it.")
  paths = source_tree.files(root, source_tree.PRODUCT + ("tests",), source_tree.CXX)
  if not paths:
    return []
  run = subprocess.run(
      [CLANG_FORMAT, "--dry-run", "--style=file", *map(str, paths)],
      cwd=root, capture_output=True, text=True, check=False)
  first = {}  # one line per file is enough: one command fixes them all
  finding = re.compile(r"^([^:\n]+):(\d+):\d+: (?:warning|error):", re.MULTILINE)
  for path, line in finding.findall(run.stderr):
    first.setdefault(path, line)
  problems = [
      f"{path}:{line}: is formatted differently: run toolchains/format.sh."
      for path, line in first.items()
  ]
  if run.returncode != 0 and not problems:
    problems.append(f"{CLANG_FORMAT} failed: {run.stderr.strip()}")
  return problems


if __name__ == "__main__":
  source_tree.main(check)
