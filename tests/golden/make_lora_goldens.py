#!/usr/bin/env python3
"""Writes data/lora/*.json: small checkpoints with a LoRA adapter, and transformers' results on W +
scale B A.

  make_lora_goldens.py [--check] [--find-seeds] [--out DIR] [NAME ...]

As make_goldens.py. The adapter's matrices have the values of the formula for their names in PEFT's
file, and the arithmetic is that of peft/tuners/lora/layer.py: scale = alpha / r, or alpha / sqrt(r)
with use_rslora; rank_pattern and alpha_pattern replace r and alpha of the modules they match.
"""

import re
import sys

import torch

import make_goldens
from make_goldens import HERE, run_tool, values

AMPLITUDE = 0.35
LINEAR = ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
          "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"]
GPT2 = ["attn.c_attn", "mlp.c_proj"]


def adapter(**changes):
  return {"peft_type": "LORA", "r": 4, "lora_alpha": 6, "bias": "none", "use_rslora": False,
          "use_dora": False, "fan_in_fan_out": False, "init_lora_weights": True,
          "target_modules": [], "modules_to_save": None, "rank_pattern": {}, "alpha_pattern": {},
          "lora_dropout": 0.0, "task_type": "CAUSAL_LM", **changes}


# name: (case of make_goldens.py, seed, modules, adapter_config.json)
CASES = {
    "all_linear": ("qk_norm", 11, LINEAR, adapter(target_modules="all-linear")),
    "patterns": ("untied", 1, ["self_attn.q_proj", "mlp.down_proj"],
                 adapter(r=3, use_rslora=True, rank_pattern={"layers.0.mlp.down_proj": 5},
                         alpha_pattern={"q_proj": 9, "1.mlp.down_proj": 2})),
    "fan_in_fan_out": ("learned_positions", 3, GPT2, adapter(fan_in_fan_out=True)),
}


def pattern_of(patterns, module, fallback):
  """get_pattern_key of peft/utils/other.py."""
  for pattern, value in patterns.items():
    if re.match(rf"(.*\.)?({pattern})$", module):
      return value
  return fallback


def fill_merged(plain, modules, config, tensors):
  """Returns make_goldens.fill, followed by the merge."""

  def fill(model, case, seed):
    plain(model, case, seed)
    for module, weight in [(n[:-7], p) for n, p in model.named_parameters()]:
      if not any(module.endswith("." + wanted) for wanted in modules):
        continue
      rank = pattern_of(config["rank_pattern"], module, config["r"])
      alpha = pattern_of(config["alpha_pattern"], module, config["lora_alpha"])
      outputs, inputs = weight.shape[::-1] if config["fan_in_fan_out"] else weight.shape
      a, b = (f"base_model.model.{module}.lora_{x}.weight" for x in "AB")
      tensors[a], tensors[b] = [rank, inputs], [outputs, rank]
      product = values_of(b, tensors, seed) @ values_of(a, tensors, seed)
      scale = alpha / (rank**0.5 if config["use_rslora"] else rank)
      with torch.no_grad():
        weight += (scale * (product.T if config["fan_in_fan_out"] else product)).float()

  return fill


def values_of(name, tensors, seed):
  shape = tensors[name]
  flat = values(name, shape[0] * shape[1], seed, AMPLITUDE)
  return torch.from_numpy(flat.reshape(shape)).double()


def make(name, find_seeds):
  base, seed, modules, config = CASES[name]
  plain, tensors = make_goldens.fill, {}
  of_base = make_goldens.CASES[base]
  make_goldens.CASES[base] = (of_base[0], seed, *of_base[2:])
  make_goldens.fill = fill_merged(plain, modules, config, tensors)
  try:
    case = make_goldens.make(base, find_seeds)
  finally:
    make_goldens.fill = plain
    make_goldens.CASES[base] = of_base
  return {**case, "name": name, "adapter": config, "adapter_amplitude": AMPLITUDE,
          "adapter_tensors": tensors}


if __name__ == "__main__":
  sys.exit(run_tool(__doc__, CASES, make, HERE / "data" / "lora"))
