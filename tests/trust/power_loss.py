#!/usr/bin/env python3
"""Loses power at every moment of what replaces a file: a saved session, a bundle, the state of the
server. Afterwards the file is the old one or the new one and can be opened, and what was to happen
can happen again; once the program has ended well, it is the new one.

usage: power_loss.py DISK_LOG ARENITE CONVERTER [--most N]
--most: states of a scenario in which it is done again (0: all)
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import trust_bundles
from emulated_disk import Disk, Record, read_log
from failures import KEY
from serve_failures import QUESTION
from server import Server

SECONDS = 120


class Scenario:
  """A command that replaces a file, and one that opens it."""

  def __init__(self, name, command, target, reader, prepare=None):
    self.name, self.command, self.target, self.reader = name, command, target, reader
    self.prepare = prepare  # makes the old file

  def run(self, folder, environment=None):
    done = subprocess.run([str(a) for a in self.command], cwd=folder, env=environment,
                          capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stderr

  def opens(self, folder):
    done = subprocess.run([str(a) for a in self.reader], cwd=folder, capture_output=True, text=True,
                          timeout=SECONDS, check=False)
    return None if done.returncode == 0 else done.stderr[-200:]


class ServeScenario(Scenario):

  def run(self, folder, environment=None):
    arenite, bundle = self.command
    held = os.environ.copy()
    os.environ.update(environment or {})
    try:
      running = Server(arenite, bundle, "--context", "128", "--state-folder", str(folder / "kept"))
    finally:
      os.environ.clear()
      os.environ.update(held)
    assert running.post("/v1/chat/completions", QUESTION).status == 200
    assert running.end() == 0, running.errors

  def opens(self, folder):
    running = Server(*self.command, "--context", "128", "--state-folder", str(folder / "kept"))
    running.end()
    return running.errors or None  # "conversations begin from scratch"


def lay_out(state, source, folder):
  """Writes a state of `source` to a folder."""
  shutil.rmtree(folder, ignore_errors=True)
  folder.mkdir()
  for path in sorted(state):
    to = folder / os.path.relpath(path, source)
    if state[path] is None:
      to.mkdir(parents=True, exist_ok=True)
    else:
      to.parent.mkdir(parents=True, exist_ok=True)
      to.write_bytes(state[path])


def key_of(state):
  return tuple(sorted((path, hash(content)) for path, content in state.items()))


def lose_power(scenario, library, work, most):
  """Returns the number of states, and problems."""
  folder, log = work / "disk", work / "log"
  shutil.rmtree(folder, ignore_errors=True)
  folder.mkdir()
  log.unlink(missing_ok=True)
  if scenario.prepare:
    scenario.prepare(folder)
  target = folder / scenario.target
  old = target.read_bytes() if target.exists() else None
  disk = Disk(folder)
  scenario.run(folder, dict(os.environ, LD_PRELOAD=str(library), ARN_DISK_FOLDER=str(folder),
                            ARN_DISK_LOG=str(log)))
  new = target.read_bytes()
  records = read_log(log)
  assert records and old != new
  problems, seen = [], {}
  for at in range(len(records) + 1):
    allowed = (old, new) if at < len(records) else (new,)
    for state in disk.states():
      found = state.get(str(target))
      if found not in allowed:
        kind = "is lost" if found in (old, None) else f"is half: {len(found)} bytes"
        problems.append(f"after call {at} of {len(records)} the file {kind}")
      seen.setdefault(key_of(state), state)
    if at < len(records):
      disk.run(records[at])
  problems = sorted(set(problems))
  retried, opened, again = 0, set(), work / "again"
  for state in seen.values():
    found = state.get(str(target))
    if found is not None and hash(found) not in opened:
      opened.add(hash(found))
      lay_out(state, folder, again)
      problem = scenario.opens(again)
      if problem:
        problems.append(f"cannot be opened: {problem}")
    if most and retried >= most:
      continue
    retried += 1
    lay_out(state, folder, again)
    scenario.run(again)
    problem = scenario.opens(again)
    if problem:
      problems.append(f"done again, cannot be opened: {problem}")
  return len(seen), problems


def check_emulator(work):
  """The emulator finds what it is for: a rename before a sync, and a folder that is not synced."""
  folder = work / "self"
  folder.mkdir()
  (folder / "a").write_bytes(b"old")
  path, temporary = str(folder / "a"), str(folder / "a.tmp")
  calls = {"o": Record("o", 7, 0, temporary, "", b""),
           "w": Record("w", 7, 0, temporary, "", b"new"),
           "s": Record("s", 7, 0, temporary, "", b""), "r": Record("r", 0, 0, temporary, path, b""),
           "S": Record("s", 1, 0, str(folder), "", b"")}
  for order, expected in (("owsrS", {b"new"}), ("owrS", {b"", b"new"}), ("owsr", {b"old", b"new"})):
    disk = Disk(folder)
    for op in order:
      disk.run(calls[op])
    found = {state[path] for state in disk.states()}
    assert found == expected, (order, found)


def scenarios(arenite, converter, folder):
  text, tiny, key = folder / "text.arn", folder / "tiny", folder / "key"
  run = [arenite, "run", text, "--seed", "1", "--threads", "2", "--max-tokens", "4", "--save",
         "x.state", "--prompt"]
  restores = [arenite, "run", text, "--restore", "x.state", "--max-tokens", "1"]

  def old_state(work):
    subprocess.run([*map(str, run), "A cat"], cwd=work, check=True, capture_output=True)

  def old_bundle(work):
    trust_bundles.convert(converter, tiny, "-o", work / "x.arn", "--weights", "f32")

  opens = [arenite, "inspect", "x.arn", "--verify-hashes"]
  serve = ServeScenario("serve_again", [arenite, text], "kept/text.state", None)

  def old_served(work):
    running = Server(arenite, text, "--context", "128", "--state-folder", str(work / "kept"))
    assert running.complete("A cat", max_tokens=3).status == 200
    assert running.end() == 0

  first = ServeScenario("serve_first", serve.command, serve.target, None)
  serve.prepare = old_served
  return [Scenario("save_first", [*run, "Once upon a time"], "x.state", restores),
          Scenario("save_again", [*run, "Once upon a time"], "x.state", restores, old_state),
          Scenario("convert_first", [converter, tiny, "-o", "x.arn"], "x.arn", opens),
          Scenario("convert_again", [converter, tiny, "-o", "x.arn", "--sign", key], "x.arn", opens,
                   old_bundle),
          first, serve]


def main():
  parser = argparse.ArgumentParser()
  for name in ("library", "arenite", "converter"):
    parser.add_argument(name)
  parser.add_argument("--most", type=int, default=0)
  given = parser.parse_args()
  n_states = n_problems = 0
  with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name).resolve()
    check_emulator(folder)
    trust_bundles.write_tiny_checkpoint(folder / "tiny")
    (folder / "key").write_text(KEY)
    trust_bundles.convert(given.converter, trust_bundles.CHECKPOINT, "-o", folder / "text.arn",
                          "--weights", "int8")
    for scenario in scenarios(given.arenite, given.converter, folder):
      states, problems = lose_power(scenario, given.library, folder, given.most)
      n_states += states
      n_problems += len(problems)
      print(f"{scenario.name:<18} {states:>7} {len(problems):>9}", flush=True)
      for problem in problems[:20]:
        print(f"  {scenario.name}: {problem}")
  print(f"{'all':<18} {n_states:>7} {n_problems:>9}")
  return 1 if n_problems else 0


if __name__ == "__main__":
  sys.exit(main())
