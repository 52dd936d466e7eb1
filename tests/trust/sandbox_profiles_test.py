#!/usr/bin/env python3
"""arenite run and arenite serve under the profiles of tools/sandbox: system calls and files.

usage: sandbox_profiles_test.py CONFINED ARENITE CONVERTER
"""

import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest

import trust_bundles
from serve_failures import QUESTION
from server import Server

CONFINED, ARENITE, CONVERTER = sys.argv[1:4]
PROFILES = trust_bundles.ROOT / "tools/sandbox"
SYSTEM = ["/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/proc", "/sys", "/dev/urandom"]
SKIPPED = 77


def names_of(path):
  text = re.sub(r"#.*", "", path.read_text())
  return text.split()


class Profiles(unittest.TestCase):

  @classmethod
  def setUpClass(cls):
    cls.temporary = tempfile.TemporaryDirectory()
    cls.folder = pathlib.Path(cls.temporary.name)
    for name in ("bundles", "out", "elsewhere"):
      (cls.folder / name).mkdir()
    cls.bundle = cls.folder / "bundles/text.arn"
    trust_bundles.convert(CONVERTER, trust_bundles.CHECKPOINT, "-o", cls.bundle, "--weights",
                          "int8")

  @classmethod
  def tearDownClass(cls):
    cls.temporary.cleanup()

  def prefix(self, profile):
    read = [str(ARENITE), str(self.folder / "bundles"),
            *(path for path in SYSTEM if pathlib.Path(path).exists())]
    return [CONFINED, str(profile), *(word for path in read for word in ("--read", path)),
            "--write", str(self.folder / "out"), "--"]

  def run_confined(self, *arguments, profile=PROFILES / "run.syscalls"):
    done = subprocess.run([*self.prefix(profile), ARENITE, *map(str, arguments)],
                          capture_output=True, text=True, timeout=60, check=False)
    if done.returncode == SKIPPED:
      self.skipTest("the kernel has no Landlock, or no filters")
    return done

  def story(self, *more):
    return ["run", self.bundle, "--prompt", "Once upon a time", "--max-tokens", "12", "--seed", "1",
            "--threads", "2", *more]

  def test_run_writes_and_saves_as_without(self):
    plain = subprocess.run([ARENITE, *map(str, self.story())], capture_output=True, text=True,
                           check=True)
    state = self.folder / "out/x.state"
    done = self.run_confined(*self.story("--save", state))
    self.assertEqual((0, plain.stdout), (done.returncode, done.stdout), done.stderr)
    done = self.run_confined("run", self.bundle, "--restore", state, "--max-tokens", "3")
    self.assertEqual(0, done.returncode, done.stderr)
    done = self.run_confined(*self.story("--regex", "[a-z ]*", "--residency", "copied", "--stats",
                                         "--kv-file", self.folder / "out/kv"))
    self.assertEqual(0, done.returncode, done.stderr)

  def test_other_files_are_refused(self):
    other = self.folder / "elsewhere/text.arn"
    other.write_bytes(self.bundle.read_bytes())
    for arguments in (["inspect", other], self.story("--save", self.folder / "elsewhere/x.state")):
      done = self.run_confined(*arguments)
      self.assertEqual(1, done.returncode, done)
      self.assertIn("ermission denied", done.stderr)

  def test_without_a_call_of_the_profile_it_is_killed(self):
    short = self.folder / "short.syscalls"
    names = names_of(PROFILES / "run.syscalls")
    short.write_text(" ".join(name for name in names if name != "pread64"))
    done = self.run_confined("inspect", self.bundle, profile=short)
    self.assertEqual(-signal.SIGSYS, done.returncode, done)

  def test_serve_answers_and_keeps_its_states(self):
    self.run_confined("--version")  # or is skipped
    command = [*self.prefix(PROFILES / "serve.syscalls"), ARENITE, "serve", str(self.bundle)]
    options = ["--port", "0", "--context", "128", "--state-folder", str(self.folder / "out/kept")]
    answers = []
    for _ in range(2):
      running = Server.__new__(Server)
      running.start([*command, *options])
      answers.append(running.post("/v1/chat/completions", QUESTION).json["choices"])
      running.post("/v1/chat/completions", {**QUESTION, "stream": True})
      running.get("/metrics")
      self.assertEqual(0, running.end(), running.errors)
    self.assertEqual(answers[0], answers[1])
    self.assertTrue((self.folder / "out/kept/text.state").exists())

  def test_the_service_has_the_calls_of_its_profile(self):
    lines = (PROFILES / "arenite-serve.service").read_text().splitlines()
    found = [name for line in lines if line.startswith("SystemCallFilter=")
             for name in line.partition("=")[2].split()]
    self.assertEqual(sorted(names_of(PROFILES / "serve.syscalls")), sorted(found))


if __name__ == "__main__":
  unittest.main(argv=sys.argv[:1])
