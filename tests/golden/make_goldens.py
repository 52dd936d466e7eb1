#!/usr/bin/env python3
"""Makes data/*.json: small checkpoints of seeded weights and what transformers computes with them.

  make_goldens.py [--check] [--find-seeds] [--out DIR] [NAME ...]

Needs transformers 5, torch and numpy. Each file holds config.json in the key style of
transformers 5 and of 4, the seed of the weights (the formula of tests/support/tiny_checkpoint.h,
written again here), a prompt, the greedy continuation, and of the teacher-forced logits over both:
of every position the log-sum-exp and the largest logit's id, and of some positions every n-th
logit. --check compares with the files that are there; --find-seeds takes for each case the first
seed whose greedy path is clear (see pick_seed) instead of the one in the table.
"""

import argparse
import copy
import json
import math
import os
import pathlib
import sys
import tempfile

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import numpy as np
import torch
import transformers

HERE = pathlib.Path(__file__).parent
NEW_TOKENS = 24
MIN_MARGIN = 0.02  # between the two largest logits on the greedy path: far above rounding
MIN_DISTINCT = 8  # different tokens on the greedy path: one that repeats itself proves little

ABSENT = object()  # as a value: the key is left out


def rope(theta=10000.0, **scaling):
  return {"rope_type": scaling.pop("rope_type", "default"), "rope_theta": theta, **scaling}


def config(architecture, model_type, **changes):
  c = {
      "architectures": [architecture],
      "model_type": model_type,
      "vocab_size": 509,
      "hidden_size": 64,
      "intermediate_size": 172,
      "num_hidden_layers": 3,
      "num_attention_heads": 4,
      "num_key_value_heads": 2,
      "head_dim": 16,
      "max_position_embeddings": 256,
      "rms_norm_eps": 1e-5,
      "hidden_act": "silu",
      "tie_word_embeddings": False,
      "bos_token_id": 1,
      "eos_token_id": 2,
      "dtype": "float32",
      "rope_parameters": rope(),
  }
  c.update(changes)
  return {k: v for k, v in c.items() if v is not ABSENT}


LLAMA = ("LlamaForCausalLM", "llama")
MISTRAL = ("MistralForCausalLM", "mistral")
QWEN2 = ("Qwen2ForCausalLM", "qwen2")
QWEN3 = ("Qwen3ForCausalLM", "qwen3")

# name -> (config, seed, what else differs from the defaults below)
CASES = {
    "tied": (config(*LLAMA, tie_word_embeddings=True, head_dim=ABSENT), 1, {}),
    "untied": (config(*LLAMA, rope_parameters=rope(500000.0)), 3, {}),
    # Nothing is a multiple of anything that a kernel likes.
    "odd_sizes": (
        config(*MISTRAL, vocab_size=1021, hidden_size=172, intermediate_size=100, head_dim=80,
               num_attention_heads=7, num_key_value_heads=1, num_hidden_layers=2,
               sliding_window=None), 3, {}),
    "biases": (
        config(*LLAMA, attention_bias=True, mlp_bias=True, head_dim=32), 5,
        {"qkv_bias": True, "o_bias": True, "mlp_bias": True}),
    "full_heads": (
        config(*LLAMA, hidden_size=96, num_attention_heads=3, num_key_value_heads=3, head_dim=128,
               intermediate_size=64), 2, {}),
    "llama3_rope": (
        config(*LLAMA, tie_word_embeddings=True,
               rope_parameters=rope(500000.0, rope_type="llama3", factor=8.0, low_freq_factor=1.0,
                                    high_freq_factor=4.0, original_max_position_embeddings=32)),
        3, {}),
    "yarn": (
        config(*LLAMA, rope_parameters=rope(rope_type="yarn", factor=4.0,
                                            original_max_position_embeddings=64)), 6, {}),
    "linear_rope": (
        config(*LLAMA, rope_parameters=rope(rope_type="linear", factor=4.0)), 1, {}),
    "window": (config(*MISTRAL, sliding_window=8), 7, {}),
    "qkv_biases": (
        config(*QWEN2, tie_word_embeddings=True, head_dim=ABSENT, rope_parameters=rope(1000000.0)),
        2, {"qkv_bias": True}),
    "window_from_layer": (
        config(*QWEN2, head_dim=ABSENT, use_sliding_window=True, sliding_window=8,
               max_window_layers=1), 3, {"qkv_bias": True}),
    "qk_norm": (
        config(*QWEN3, tie_word_embeddings=True, head_dim=32, num_attention_heads=5, hidden_size=80,
               num_key_value_heads=1, rope_parameters=rope(1000000.0)), 3, {"qk_norm": True}),
    "bf16_sharded": (config(*LLAMA, dtype="bfloat16"), 1, {"dtype": "BF16", "shards": 3}),
    "f16": (config(*QWEN3, dtype="float16", head_dim=32), 2, {"dtype": "F16", "qk_norm": True}),
}
DEFAULTS = {"qkv_bias": False, "o_bias": False, "mlp_bias": False, "qk_norm": False,
            "dtype": "F32", "shards": 1}


def amplitude_of(c):
  """Keeps the numbers of a layer at about the size that they come in with: a uniform value in
  [-a, a) has a variance of a^2 / 3."""
  return round(1.4 * math.sqrt(3.0 / c["hidden_size"]), 3)


def old_config(c):
  """The config as transformers 4 wrote it."""
  old = copy.deepcopy(c)
  old["torch_dtype"] = old.pop("dtype")
  old["transformers_version"] = "4.51.0"
  scaling = old.pop("rope_parameters")
  old["rope_theta"] = scaling.pop("rope_theta")
  old["rope_scaling"] = None if scaling["rope_type"] == "default" else scaling
  return old


def values(name, count, base_seed, amplitude):
  """The formula of tests/support/tiny_checkpoint.h."""
  mask = (1 << 64) - 1
  seed = 0xCBF29CE484222325
  for byte in name.encode():
    seed = ((seed ^ byte) * 0x100000001B3) & mask
  seed ^= base_seed
  with np.errstate(over="ignore"):
    step = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = np.uint64(seed) + step
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
  centred = (z >> np.uint64(40)).astype(np.int64) - (1 << 23)
  unit = centred.astype(np.float32) / np.float32(1 << 23)
  if name.endswith("norm.weight"):
    return np.float32(1) + unit * np.float32(0.1)
  return unit * np.float32(amplitude)


TORCH_DTYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}


def fill(model, case, seed):
  for name, parameter in model.named_parameters():
    flat = values(name, parameter.numel(), seed, case["amplitude"]).reshape(parameter.shape)
    with torch.no_grad():
      parameter.copy_(torch.from_numpy(flat).to(TORCH_DTYPES[case["dtype"]]).float())
  model.tie_weights()


def make_model(c):
  cls = getattr(transformers, c["architectures"][0])
  with tempfile.TemporaryDirectory() as folder:
    pathlib.Path(folder, "config.json").write_text(json.dumps(c))
    read = transformers.AutoConfig.from_pretrained(folder)
  model = cls._from_config(read, attn_implementation="eager", dtype=torch.float32)
  return model.float().eval()


def prompt_of(c, number):
  vocab = c["vocab_size"]
  return [1] + [(37 * i * i + 11 * i + 5 + 101 * number) % (vocab - 4) + 4 for i in range(30)]


@torch.no_grad()
def greedy(model, prompt):
  """Ids of prompt and continuation, without a cache; and the smallest margin on the way."""
  ids = list(prompt)
  margin = math.inf
  for _ in range(NEW_TOKENS):
    logits = model(input_ids=torch.tensor([ids]), use_cache=False).logits[0, -1]
    top = logits.topk(2)
    margin = min(margin, float(top.values[0] - top.values[1]))
    ids.append(int(top.indices[0]))
  return ids, margin


def pick_seed(model, case, prompt):
  for seed in range(1, 200):
    fill(model, case, seed)
    ids, margin = greedy(model, prompt)
    if margin >= MIN_MARGIN and len(set(ids[len(prompt):])) >= MIN_DISTINCT:
      return seed
  raise SystemExit("no seed of 200 has a clear greedy path")


def rounded(x):
  return float(f"{float(x):.8g}")


@torch.no_grad()
def make(name, find_seeds):
  c, seed, changes = CASES[name]
  case = {"name": name, "config": c, "old_config": old_config(c), **DEFAULTS, **changes,
          "base_seed": seed, "amplitude": amplitude_of(c)}
  model = make_model(c)
  prompt = prompt_of(c, list(CASES).index(name))
  if find_seeds:
    case["base_seed"] = pick_seed(model, case, prompt)
  fill(model, case, case["base_seed"])
  ids, margin = greedy(model, prompt)
  distinct = len(set(ids[len(prompt):]))
  if margin < MIN_MARGIN or distinct < MIN_DISTINCT:
    raise SystemExit(f"{name}: margin {margin:.4f}, {distinct} distinct: use --find-seeds")
  logits = model(input_ids=torch.tensor([ids]), use_cache=False).logits[0].double()

  # The same weights under the old config are the same model.
  old = make_model(case["old_config"])
  fill(old, case, case["base_seed"])
  difference = (old(input_ids=torch.tensor([ids]), use_cache=False).logits[0] - logits).abs().max()
  if difference > 1e-6:
    raise SystemExit(f"{name}: the old config gives other logits, by {float(difference):.2e}")

  stride = 7
  positions = sorted({0, 1, 7, 8, 9, 15, len(prompt) - 1, len(ids) - 2, len(ids) - 1})
  case |= {
      "prompt": prompt,
      "greedy": ids[len(prompt):],
      "margin": rounded(margin),
      "log_sum_exp": [rounded(x) for x in torch.logsumexp(logits, -1)],
      "argmax": logits.argmax(-1).tolist(),
      "positions": positions,
      "stride": stride,
      "logits": [[rounded(x) for x in logits[p, ::stride]] for p in positions],
  }
  print(f"{name:18s} seed {case['base_seed']:3d} margin {margin:.4f} distinct {distinct:2d} "
        f"logits {float(logits.min()):.2f}..{float(logits.max()):.2f}", flush=True)
  return case


def text_of(case):
  """JSON with one key a line and one row of logits a line."""
  lines = []
  for key, value in case.items():
    if key == "logits":
      rows = ",\n  ".join(json.dumps(row, separators=(",", ":")) for row in value)
      lines.append(f'"logits": [\n  {rows}\n]')
    else:
      lines.append(f"{json.dumps(key)}: {json.dumps(value)}")
  return "{\n" + ",\n".join(lines) + "\n}\n"


def agree(a, b):
  """Equal but for the last bits of the reference's own arithmetic."""
  if isinstance(a, float) or isinstance(b, float):
    return abs(a - b) <= 1e-5
  if isinstance(a, list):
    return len(a) == len(b) and all(agree(x, y) for x, y in zip(a, b))
  if isinstance(a, dict):
    return a.keys() == b.keys() and all(agree(a[k], b[k]) for k in a)
  return a == b


def main():
  parser = argparse.ArgumentParser(description=__doc__,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--check", action="store_true")
  parser.add_argument("--find-seeds", action="store_true")
  parser.add_argument("--out", type=pathlib.Path, default=HERE / "data")
  parser.add_argument("names", nargs="*", metavar="NAME")
  arguments = parser.parse_args()
  torch.set_num_threads(1)
  transformers.utils.logging.set_verbosity_error()
  differ = 0
  for name in arguments.names or CASES:
    case = make(name, arguments.find_seeds)
    path = arguments.out / f"{name}.json"
    if not arguments.check:
      path.write_text(text_of(case))
    elif not agree(json.loads(path.read_text()), json.loads(text_of(case))):
      print(f"{path} differs")
      differ += 1
  return 1 if differ else 0


if __name__ == "__main__":
  sys.exit(main())
