"""Shared by the lints: lists the files, strips comments, reports problems.

A lint is a module with a function check(root) that returns a list of problems, each one line
"path:line: what is wrong". main(check) makes it a program: exit 0 clean, 1 problems, 77 skipped.
"""

import argparse
import os
import pathlib
import re
import sys

# Folders of this repository's code. Third-party sources (.deps) and build trees are never entered.
LIBRARY = ("platform", "kernels", "runtime")
PRODUCT = LIBRARY + ("converter", "tools", "bindings")
EVERYTHING = PRODUCT + ("tests", "toolchains", "docs", ".ci")

CXX = (".h", ".cc", ".c")
CODE = CXX + (".fbs", ".comp", ".java", ".kt", ".py", ".sh", ".cmake", "CMakeLists.txt")

SKIPPED = 77


class Skip(Exception):
  """Raised by a check that cannot run here. ctest reports it as skipped, with the reason."""


def files(root, folders, endings):
  """Returns the sorted paths, relative to root, of files in folders with one of endings."""
  found = []
  for folder in folders:
    for directory, subfolders, names in os.walk(root / folder):
      subfolders[:] = sorted(d for d in subfolders if d not in ("__pycache__", ".deps", "build"))
      for name in names:
        if name.endswith(endings):
          found.append(pathlib.Path(directory, name).relative_to(root))
  return sorted(found)


def read(root, path):
  return (root / path).read_text(encoding="utf-8", errors="replace")


_CXX_TOKEN = re.compile(
    r"""//[^\n]*                                      # line comment
      | /\*.*?\*/                                     # block comment
      | R"(?P<delimiter>[^()\\\s]{0,16})\(.*?\)(?P=delimiter)"  # raw string
      | "(?:\\.|[^"\\\n])*"                           # string
      | (?<![0-9A-Za-z_])'(?:\\.|[^'\\\n])+'          # character, not a digit separator
    """,
    re.VERBOSE | re.DOTALL,
)


def blank_comments_and_strings(text):
  """Returns the text with comments and string contents as spaces. Line numbers stay the same."""

  def blank(match):
    token = match.group(0)
    if token.startswith("/"):
      return re.sub(r"[^\n]", " ", token)
    first = token.index(token[-1])
    return token[: first + 1] + re.sub(r"[^\n]", " ", token[first + 1 : -1]) + token[-1]

  return _CXX_TOKEN.sub(blank, text)


_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">]+)[">]', re.MULTILINE)


def includes(text):
  """Yields (line number, '"' or '<', header) of each include directive."""
  for match in _INCLUDE.finditer(text):
    yield text.count("\n", 0, match.start()) + 1, match.group(1), match.group(2)


def allowed(line, rule):
  """True if the line has an exemption: `// lint:allow <rule>: <reason>`."""
  return re.search(r"lint:allow " + re.escape(rule) + r": \S", line) is not None


def main(check):
  parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
  parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).parents[2])
  root = parser.parse_args().root.resolve()
  try:
    problems = check(root)
  except Skip as reason:
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)
  for problem in problems:
    print(problem)
  print(f"{len(problems)} problem(s)")
  sys.exit(1 if problems else 0)
