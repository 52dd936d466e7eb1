#!/usr/bin/env python3
"""Compares toolchains/deps.lock with known_cves.txt, an offline list: each known weakness of a
pinned version needs an answer.

usage: dep_cves.py [LOCK [LIST]]
"""

import pathlib
import re
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def numbers(version):
  """None for a commit."""
  return ([int(part) for part in version.split(".")]
          if re.fullmatch(r"[0-9]+(\.[0-9]+)+", version) else None)


def is_in_range(version, affected):
  if affected == "*":
    return True
  found, bound = numbers(version), numbers(affected[1:])
  if found is None:
    return True
  return found < bound if affected[0] == "<" else found == bound


def pinned(lock):
  lines = (line.split() for line in lock.read_text().splitlines() if not line.startswith("#"))
  return {fields[0]: fields[1] for fields in lines if fields}


def check(lock, advisories):
  """Returns the number of advisories, and problems."""
  versions, problems, count = pinned(lock), [], 0
  text = advisories.read_text()
  for line in text.splitlines():
    if not line or line.startswith("#"):
      continue
    name, advisory, affected, answer = (part.strip() for part in line.split("|", 3))
    count += 1
    if name not in versions:
      problems.append(f"{advisory}: {name} is not pinned")
    elif not re.fullmatch(r"\*|[<=][0-9.]+", affected):
      problems.append(f"{advisory}: {affected} is no range")
    elif is_in_range(versions[name], affected) and not answer:
      problems.append(f"{advisory}: {name} {versions[name]} is affected ({affected}), and nothing "
                      "says why that does no harm: pin a later version, or answer it")
  if not re.search(r"^# [0-9]{4}-[0-9]{2}-[0-9]{2}$", text.splitlines()[-1]):
    problems.append("the last line is no date")
  return count, problems


def self_test(folder):
  """A version below the bound is found, and one at it is not."""
  lock, advisories = folder / "lock", folder / "list"
  lock.write_text("a 1.9.0 x\nb 1.10 x\n")
  advisories.write_text("a | CVE-1 | <1.10.0 |\nb | CVE-2 | <1.10 |\n# 2026-01-01\n")
  assert [p.split(":")[0] for p in check(lock, advisories)[1]] == ["CVE-1"]


def main():
  with tempfile.TemporaryDirectory() as name:
    self_test(pathlib.Path(name))
  lock = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "toolchains/deps.lock"
  advisories = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else HERE / "known_cves.txt"
  count, problems = check(lock, advisories)
  for problem in problems:
    print(problem)
  print(f"{'all':<18} {count:>7} {len(problems):>9}")
  return 1 if problems else 0


if __name__ == "__main__":
  sys.exit(main())
