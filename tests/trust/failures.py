#!/usr/bin/env python3
"""Fails the n-th call of each class of calls in the library and in the tools: allocations, maps,
opens, reads, writes, syncs, renames, threads, sockets; once, and for ever from n on.

usage: failures.py SUBJECT SHIM ARENITE CONVERTER [--most N] [--only PART] [--lines FILE]
--most: runs for each class, error and mode, spread over its calls; 0: one for every call
--only: subject, serve, or the name of a command (several, separated by commas)
"""

import argparse
import collections
import json
import pathlib
import subprocess
import sys
import tempfile

import trust_bundles
from faults import FAULTS, SOCKET_FAULTS, Control
from serve_failures import ServeFailures
from tool_failures import CommandFailures, commands, fail_command

KEY = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60\n"  # RFC 8032, test 1


def subject_lines(subject, control, folder, most):
  with subprocess.Popen([subject, str(folder), str(most)], env=control.environment,
                        stdout=subprocess.PIPE, text=True) as running:
    for line in running.stdout:
      yield json.loads(line)
  if running.returncode != 0:
    yield {"scenario": "subject", "class": "-", "error": "-", "mode": "-", "calls": 0, "runs": 1,
           "problems": [f"ends with {running.returncode}"]}


def all_lines(given, folder):
  control = Control(given.shim, folder)
  tiny, key, sound = folder / "tiny", folder / "key", folder / "sound.wav"
  trust_bundles.write_tiny_checkpoint(tiny)
  key.write_text(KEY)
  sound.write_bytes(trust_bundles.wav(4000))
  trust_bundles.make_bundles(given.converter, folder)

  def is_asked(name):
    return given.only is None or name in given.only.split(",")

  if is_asked("subject"):
    yield from subject_lines(given.subject, control, folder, given.most)
  for command in commands(given.arenite, given.converter, folder, trust_bundles.CHECKPOINT, tiny,
                          key, sound):
    if is_asked(command.name):
      yield from fail_command(CommandFailures(command, control, folder), given.most, FAULTS)
  if is_asked("serve"):
    serve = ServeFailures(given.arenite, folder / "text.arn", control)
    kinds = FAULTS + SOCKET_FAULTS
    yield from serve.start_lines(given.most, kinds)
    yield from serve.request_lines(given.most, kinds)


def main():
  parser = argparse.ArgumentParser()
  for name in ("subject", "shim", "arenite", "converter"):
    parser.add_argument(name)
  parser.add_argument("--most", type=int, default=0)
  parser.add_argument("--only")
  parser.add_argument("--lines", type=pathlib.Path)
  given = parser.parse_args()
  runs, problems = collections.Counter(), collections.Counter()
  lines = []
  with tempfile.TemporaryDirectory() as name:
    for line in all_lines(given, pathlib.Path(name)):
      lines.append(line)
      key = line["scenario"]
      runs[key] += line["runs"]
      problems[key] += len(line["problems"])
      for problem in line["problems"]:
        print(f"{key}, {line['class']} {line['error']} {line['mode']}: {problem}", flush=True)
  if given.lines:
    given.lines.write_text("".join(json.dumps(line) + "\n" for line in lines))
  print(f"{'scenario':<18} {'runs':>7} {'failures':>9}")
  for key in runs:
    print(f"{key:<18} {runs[key]:>7} {problems[key]:>9}")
  print(f"{'all':<18} {sum(runs.values()):>7} {sum(problems.values()):>9}")
  return 1 if sum(problems.values()) or not sum(runs.values()) else 0


if __name__ == "__main__":
  sys.exit(main())
