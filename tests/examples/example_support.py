"""Shared by the tests of the examples: arguments, the demo model as a bundle, and programs."""

import argparse
import os
import pathlib
import subprocess
import sys
import unittest

options = None


def parse_arguments():
  global options
  parser = argparse.ArgumentParser()
  parser.add_argument("--source", type=pathlib.Path, required=True)
  parser.add_argument("--build", type=pathlib.Path, required=True)
  parser.add_argument("--cc", required=True)
  options, rest = parser.parse_known_args()
  return rest


def run(*command, stdin="", **environment):
  done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                        input=stdin, env={**os.environ, **environment}, check=False)
  if done.returncode != 0:
    raise AssertionError(f"{command}: exit {done.returncode}\n{done.stdout[-3000:]}"
                         f"{done.stderr[-3000:]}")
  return done.stdout


def convert(folder):
  bundle = folder / "fable.arn"
  run(options.build / "bin/arenite-convert", options.source / "models/fable/fable-2m", "-o", bundle,
      "--weights", "int8")
  return bundle


def main(rest):
  unittest.main(module="__main__", argv=[sys.argv[0]] + rest)
