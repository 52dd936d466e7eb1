"""Compares the time to create a session on a device with that of copying the bundle's bytes.

  load_time.py build/release/bin/arenite F.arn [--device NAME] [--rounds 5] [--most 1.3]

Both read the file from the page cache. "copy" writes its bytes into new memory, once. Medians; with
--most the exit code is 1 if the ratio is larger.
"""

import argparse
import json
import mmap
import os
import statistics
import subprocess
import sys
import time


def copy_ms(path):
  with open(path, "rb") as file:
    with mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as pages:
      start = time.perf_counter()
      copy = bytes(pages)
      ms = (time.perf_counter() - start) * 1e3
      del copy
  return ms


def load_ms(arenite, bundle, device):
  command = [arenite, "run", bundle, "--backend", "vulkan", "--trust-device", "--device-folder",
             "none", "--prompt", "a", "--max-tokens", "1", "--json"]
  if device:
    command += ["--device", device]
  out = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
  if out.returncode != 0:
    raise SystemExit(f"{' '.join(command)}: {out.stderr.decode()}")
  return json.loads(out.stdout)["load_ms"]


def main():
  parser = argparse.ArgumentParser()
  parser.add_argument("arenite")
  parser.add_argument("bundle")
  parser.add_argument("--device", default="")
  parser.add_argument("--rounds", type=int, default=5)
  parser.add_argument("--most", type=float, default=0.0)
  args = parser.parse_args()
  copies, loads = [], []
  for i in range(args.rounds + 1):  # the first fills the page cache
    copied, loaded = copy_ms(args.bundle), load_ms(args.arenite, args.bundle, args.device)
    if i > 0:
      copies.append(copied)
      loads.append(loaded)
  copy, load = statistics.median(copies), statistics.median(loads)
  print(f"{os.path.getsize(args.bundle) / 1e6:.0f} MB: copy {copy:.0f} ms, load {load:.0f} ms, "
        f"ratio {load / copy:.2f}")
  return 1 if args.most and load > args.most * copy else 0


if __name__ == "__main__":
  sys.exit(main())
