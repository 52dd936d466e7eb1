"""A file has one job and fits on a few screens: 400 lines are long, 700 are a design error. Lines
have at most 100 columns, so that two files fit side by side.
"""

import source_tree

LONG_LINES = 400
MAX_LINES = 700
MAX_COLUMNS = 100


def check(root):
  problems = []
  for path in source_tree.files(root, source_tree.EVERYTHING, source_tree.CODE):
    lines = source_tree.read(root, path).splitlines()
    if len(lines) > MAX_LINES:
      problems.append(f"{path}:{len(lines)}: more than {MAX_LINES} lines: split it by job.")
    elif len(lines) > LONG_LINES:
      print(f"{path}: note: {len(lines)} lines; above {LONG_LINES} a file begins to have two jobs.")
    for number, line in enumerate(lines, 1):
      if len(line) > MAX_COLUMNS and "http" not in line and "lint:allow columns: " not in line:
        problems.append(f"{path}:{number}: {len(line)} columns, at most {MAX_COLUMNS}.")
  return problems


if __name__ == "__main__":
  source_tree.main(check)
