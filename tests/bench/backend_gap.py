#!/usr/bin/env python3
"""Explains why backends choose different tokens. Prints, after each token of a prompt, the gap
between the top two logits and the distance between the backends' logits.

  backend_gap.py build/release/bin/arenite MODEL.arn --ids 1,17,300
      [--backends reference,cpu,vulkan] [--kv f32]

The first backend is the reference. If another backend has a different argmax, the line shows the
gap between both tokens in the reference. If the gap is below the logit distance, no backend is
wrong.
"""

import argparse
import array
import os
import subprocess
import tempfile


def logits_of(tool, model, ids, backend, kv):
  """Returns one array of logits per token."""
  with tempfile.TemporaryDirectory() as folder:
    out = os.path.join(folder, "logits")
    subprocess.run([tool, "logits", model, "--prompt-ids", ids, "--kv", kv, "--backend", backend,
                    "--out", out], check=True)
    with open(out, "rb") as f:
      data = f.read()
  n = len(ids.split(","))
  step = len(data) // n
  rows = []
  for i in range(n):
    row = array.array("f")
    row.frombytes(data[i * step:(i + 1) * step])
    rows.append(row)
  return rows


def root_mean_square(values):
  return (sum(v * v for v in values) / len(values)) ** 0.5


def main():
  parser = argparse.ArgumentParser(description=__doc__,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("tool")
  parser.add_argument("model")
  parser.add_argument("--ids", required=True)
  parser.add_argument("--backends", default="reference,cpu,vulkan")
  parser.add_argument("--kv", default="f32")
  arguments = parser.parse_args()
  names = arguments.backends.split(",")
  found = {name: logits_of(arguments.tool, arguments.model, arguments.ids, name, arguments.kv)
           for name in names}

  print("| | | largest difference | root mean square |\n|---|---|---|---|")
  for i, a in enumerate(names):
    for b in names[i + 1:]:
      differences = [x - y for p, q in zip(found[a], found[b]) for x, y in zip(p, q)]
      print(f"| {a} | {b} | {max(map(abs, differences)):.5f} | "
            f"{root_mean_square(differences):.5f} |")

  judge = names[0]
  print(f"\n| token | largest logit | gap of {judge}'s best two | other choices |")
  print("|---|---|---|---|")
  for i, row in enumerate(found[judge]):
    best, second = sorted(row)[:-3:-1]
    others = []
    for name in names[1:]:
      choice = max(range(len(row)), key=found[name][i].__getitem__)
      if row[choice] != best:
        others.append(f"{name}: {choice}, {best - row[choice]:.5f} less")
    print(f"| {i} | {max(map(abs, row)):.3f} | {best - second:.5f} | {'; '.join(others)} |")


if __name__ == "__main__":
  main()
