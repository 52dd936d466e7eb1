"""Shared by the tests of packages."""

import os
import subprocess


def run(*command, **environment):
  """Runs a command and returns its output; a failure shows the end of what it said."""
  done = subprocess.run([str(part) for part in command], capture_output=True, text=True,
                        env={**os.environ, **environment})
  if done.returncode != 0:
    raise AssertionError(f"{command}: exit {done.returncode}\n{done.stdout[-3000:]}"
                         f"{done.stderr[-3000:]}")
  return done.stdout
