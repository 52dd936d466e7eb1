#!/usr/bin/env python3
"""Writes data/ternary/*.json: BitNet checkpoints, and the results of transformers' linear layers.

  make_ternary_goldens.py [--check] [--find-seeds] [--out DIR] [NAME ...]

As make_goldens.py, with layers of transformers' integrations/bitnet.py in place of the projections.
Their stored tensors follow from the values of make_goldens.py, here and in ternary_test.cc: a level
is -1 below -1/3, 1 above 1/3 of the largest value, else 0, and a matrix has the scale
amplitude (1 + |u| / 2), with u the first value in [-1, 1) for NAME_scale.
"""

import os
import pathlib
import sys

os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")

import numpy as np
import torch
from transformers.integrations import bitnet

import make_goldens
from golden_cases import ABSENT, config

QUANT = {"quant_method": "bitnet"}
CASES = {
    "packed": (QUANT | {"modules_to_not_convert": None}, 10),
    "packed_scaled": (QUANT | {"linear_class": "autobitlinear", "quantization_mode": "offline"}, 1),
    "rounded": (QUANT | {"linear_class": "autobitlinear", "quantization_mode": "online",
                         "modules_to_not_convert": ["lm_head"]}, 7),
}


def levels_of(values, amplitude):
  border = np.float32(amplitude) / np.float32(3)
  return (values > border).astype(np.float32) - (values < -border).astype(np.float32)


def scale_of(name, seed, amplitude):
  u = make_goldens.values(name + "_scale", 1, seed, 1.0)[0]
  return np.float32(amplitude) * (np.float32(1) + np.abs(u) / np.float32(2))


def layer_of(name, weight, keys, case):
  """Returns the layer that transformers puts in place of a projection with these weights."""
  seed, amplitude = case["base_seed"], case["amplitude"]
  n_out, n_in = weight.shape
  if keys.get("quantization_mode") == "online":
    layer = bitnet.AutoBitLinear(n_in, n_out, bias=False, online_quant=True)
    layer.weight = torch.nn.Parameter(weight)
    return layer
  levels = torch.from_numpy(levels_of(weight.numpy(), amplitude))
  scale = scale_of(name, seed, amplitude)
  packed = bitnet.pack_weights(levels.clone())
  if keys.get("linear_class") == "autobitlinear":
    layer = bitnet.AutoBitLinear(n_in, n_out, bias=False, dtype=torch.float32)
    state = {"weight": packed, "weight_scale": torch.tensor([scale])}
  else:
    layer = bitnet.BitLinear(n_in, n_out, bias=False, dtype=torch.float32)
    state = {"weight": packed, "weight_scale": torch.tensor([np.float32(1) / scale])}
  layer.load_state_dict(state)
  return layer


def replace(model, keys, case):
  for name, module in list(model.named_modules()):
    if isinstance(module, torch.nn.Linear) and name.endswith("_proj"):
      model.set_submodule(
          name, layer_of(name + ".weight", module.weight.detach(), keys, case))


@torch.no_grad()
def make(name, find_seeds):
  keys, seed = CASES[name]
  c = config("BitNetForCausalLM", "bitnet", head_dim=ABSENT, hidden_act="relu2",
             intermediate_size=100)
  case = {"name": name, "config": c | {"quantization_config": keys},
          "old_config": make_goldens.old_config(c) | {"quantization_config": keys},
          **make_goldens.DEFAULTS, "base_seed": seed,
          "amplitude": make_goldens.amplitude_of(c)}
  prompt = make_goldens.prompt_of(c, len(name))
  for case["base_seed"] in range(seed, 200 if find_seeds else seed + 1):
    model = make_goldens.make_model(c)
    case["tensors"] = make_goldens.stored_shapes(model)
    make_goldens.fill(model, case, case["base_seed"])
    replace(model, keys, case)
    ids, margin = make_goldens.greedy(model, prompt)
    distinct = len(set(ids[len(prompt):]))
    if margin >= make_goldens.MIN_MARGIN and distinct >= make_goldens.MIN_DISTINCT:
      break
  else:
    raise SystemExit(f"{name}: margin {margin:.4f}, {distinct} distinct: use --find-seeds")
  logits = model(input_ids=torch.tensor([ids]), use_cache=False).logits[0].double()
  stride = 7
  positions = list(range(0, len(ids), 3))
  case |= {
      "prompt": prompt,
      "greedy": ids[len(prompt):],
      "margin": make_goldens.rounded(margin),
      "log_sum_exp": [make_goldens.rounded(x) for x in torch.logsumexp(logits, -1)],
      "argmax": logits.argmax(-1).tolist(),
      "positions": positions,
      "stride": stride,
      "logits": [[make_goldens.rounded(x) for x in logits[p, ::stride]] for p in positions],
  }
  print(f"{name:14s} seed {case['base_seed']:3d} margin {margin:.4f} distinct {distinct}")
  return case


if __name__ == "__main__":
  sys.exit(make_goldens.run_tool(__doc__, CASES, make,
                                 pathlib.Path(__file__).parent / "data" / "ternary"))
