#!/usr/bin/env python3
"""The npm packages openai and ai as clients (clients/). Skipped without node and npm, or where npm
cannot install them.

  npm_clients_test.py ARENITE CONVERTER CHECKPOINT
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import server

ARENITE, CONVERTER, CHECKPOINT = sys.argv[1:4]
SKIPPED = 77  # SKIP_RETURN_CODE


def main():
  if not shutil.which("node") or not shutil.which("npm"):
    print("skipped: there is no node or no npm")
    return SKIPPED
  with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    clients = folder / "clients"
    shutil.copytree(pathlib.Path(__file__).parent / "clients", clients)
    installed = subprocess.run(
        ["npm", "install", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts"],
        cwd=clients, capture_output=True, text=True)
    if installed.returncode:
      print(f"skipped: npm cannot install the packages\n{installed.stderr}")
      return SKIPPED
    bundle = server.make_bundle(CONVERTER, CHECKPOINT, folder)
    vectors = folder / "vectors.arn"
    subprocess.run([CONVERTER, CHECKPOINT, "-o", vectors, "--pooling", "mean", "--quiet"],
                   check=True)
    started = server.Server(ARENITE, bundle, "--sequences", "4", "--embedder", str(vectors))
    try:
      done = subprocess.run(
          ["node", "--test", "--test-reporter=spec"], cwd=clients, timeout=240,
          env={**os.environ, "ARENITE_URL": f"http://127.0.0.1:{started.port}",
               "ARENITE_MODEL": "fable", "ARENITE_EMBEDDER": "vectors"})
    finally:
      code = started.end()
    return done.returncode or code


if __name__ == "__main__":
  sys.exit(main())
