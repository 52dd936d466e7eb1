#!/usr/bin/env python3
"""Writes data/steer/*.json: small checkpoints, and transformers' results with a control vector
added to the output of layers by hooks.

  make_steer_goldens.py [--check] [--find-seeds] [--out DIR] [NAME ...]

As make_goldens.py. The vectors have the values of the formula for their names in llama.cpp's files,
direction.N for the output of layer N.
"""

import sys

import torch

import make_goldens
from make_goldens import HERE, run_tool, values

AMPLITUDE = 0.5

# name: (case of make_goldens.py, seed, name of the layers' list, scales by layer)
CASES = {
    "rotary": ("qk_norm", 2, "layers", {1: 1.0}),
    "post_norms": ("sandwich_softcap", 2, "layers", {1: 1.0, 2: -0.75}),
    "learned": ("learned_positions", 1, "h", {1: 1.5}),
}


def add_hook(layer, direction):

  def hook(module, inputs, output):
    if isinstance(output, tuple):
      return (output[0] + direction, *output[1:])
    return output + direction

  return layer.register_forward_hook(hook)


def fill_steered(plain, layers_name, scales):
  """Returns make_goldens.fill, followed by the hooks."""
  handles = []

  def fill(model, case, seed):
    plain(model, case, seed)
    while handles:
      handles.pop().remove()
    layers = getattr(model.base_model, layers_name)
    hidden = model.config.hidden_size
    for n, scale in scales.items():
      direction = torch.from_numpy(values(f"direction.{n}", hidden, seed, AMPLITUDE)).float()
      handles.append(add_hook(layers[n], scale * direction))

  return fill


def make(name, find_seeds):
  base, seed, layers_name, scales = CASES[name]
  plain = make_goldens.fill
  of_base = make_goldens.CASES[base]
  make_goldens.CASES[base] = (of_base[0], seed, *of_base[2:])
  make_goldens.fill = fill_steered(plain, layers_name, scales)
  try:
    case = make_goldens.make(base, find_seeds)
  finally:
    make_goldens.fill = plain
    make_goldens.CASES[base] = of_base
  return {**case, "name": name, "direction_amplitude": AMPLITUDE,
          "direction_scales": {str(n): scale for n, scale in scales.items()}}


if __name__ == "__main__":
  sys.exit(run_tool(__doc__, CASES, make, HERE / "data" / "steer"))
