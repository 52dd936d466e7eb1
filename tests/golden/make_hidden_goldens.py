#!/usr/bin/env python3
"""Writes data/cache/hidden.json: transformers' residual stream after each layer.

  make_hidden_goldens.py [--check] [--out DIR]

Needs transformers 5, torch and numpy. For some checkpoints of make_goldens.py, over the first
tokens of prompt and continuation: the output of the embedding and of each layer, for the last
layer after the final norm, every few columns. Floats are base64 of little-endian f32. --check
compares with the existing file.
"""

import argparse
import base64
import json
import pathlib

from make_cache_goldens import HERE, floats, ints, seeded
from golden_cases import CASES
from make_goldens import prompt_of

import numpy as np
import torch
import transformers

NAMES = ("qk_norm", "sandwich_softcap", "parallel_residual", "post_norms", "learned_positions")
TOKENS = 24
STEP = 3
SAME = 1e-5


@torch.no_grad()
def make(name):
  model = seeded(name)
  c, _, _ = CASES[name]
  ids = prompt_of(c, list(CASES).index(name))[:TOKENS]
  hidden = model(input_ids=ints(ids), use_cache=False, output_hidden_states=True).hidden_states
  return {"name": name, "ids": ids, "step": STEP,
          "hidden": [floats(h[0, :, ::STEP].numpy()) for h in hidden]}


def decoded(case):
  return [np.frombuffer(base64.b64decode(h), dtype="<f4") for h in case["hidden"]]


def main():
  parser = argparse.ArgumentParser(description=__doc__,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--check", action="store_true")
  parser.add_argument("--out", type=pathlib.Path, default=HERE / "data" / "cache")
  arguments = parser.parse_args()
  torch.set_num_threads(1)
  transformers.utils.logging.set_verbosity_error()
  cases = [make(name) for name in NAMES]
  path = arguments.out / "hidden.json"
  if not arguments.check:
    path.write_text("[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n")
    return
  for case, stored in zip(cases, json.loads(path.read_text()), strict=True):
    same = case["ids"] == stored["ids"] and all(
        a.shape == b.shape and np.abs(a - b).max() <= SAME
        for a, b in zip(decoded(case), decoded(stored), strict=True))
    if not same:
      raise SystemExit(f"{case['name']}: differs")


if __name__ == "__main__":
  main()
