#!/usr/bin/env python3
"""Writes data/*.json: small checkpoints with seeded weights, and transformers' results on them.

  make_goldens.py [--check] [--find-seeds] [--out DIR] [NAME ...]

Needs transformers 5, torch and numpy; published_models.py has the models that transformers lacks.
Each file holds config.json in the key style of transformers 5 and of 4, the seed of the weights
(the formula of tests/support/tiny_checkpoint.h, implemented again here), a prompt, and the greedy
continuation. For the teacher-forced logits over both it holds the log-sum-exp and the argmax of
every position, and every n-th logit of some positions. --check compares with the existing files.
--find-seeds replaces each seed of the table by the first one whose greedy path is clear (see
pick_seed).
"""

import argparse
import copy
import json
import math
import os
import pathlib
import sys
import tempfile
import zlib

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import numpy as np
import safetensors.torch
import torch
import transformers

import golden_cases
import published_models  # registers them
from golden_cases import ABSENT
from newer_golden_cases import NEWER_CASES

CASES = golden_cases.CASES | NEWER_CASES

HERE = pathlib.Path(__file__).parent
NEW_TOKENS = 24
MIN_MARGIN = 0.02  # between the two largest logits on the greedy path: far above rounding
MIN_DISTINCT = 8  # distinct tokens on the greedy path: a repeating one proves little

# Cases up to this one have the tensors of tests/support/tiny_checkpoint.h; the others list theirs.
LAST_WITHOUT_LIST = "f16"
DEFAULTS = {"qkv_bias": False, "o_bias": False, "mlp_bias": False, "qk_norm": False,
            "dtype": "F32", "shards": 1}


def amplitude_of(c):
  """Keeps a layer's output at about the magnitude of its input: a uniform value in [-a, a) has
  variance a^2 / 3."""
  width = next(c[key] for key in ("hidden_size", "n_embd", "d_model") if key in c)
  return round(1.4 * math.sqrt(3.0 / width), 3)


def old_config(c):
  """Returns the config as transformers 4 wrote it."""
  old = copy.deepcopy(c)
  old["torch_dtype"] = old.pop("dtype")
  old["transformers_version"] = "4.51.0"
  if c["model_type"] == "lfm2":
    types = old.pop("layer_types")
    old["full_attn_idxs"] = [i for i, t in enumerate(types) if t == "full_attention"]
    old["block_ff_dim"] = old.pop("intermediate_size")
    old["tie_embedding"] = old.pop("tie_word_embeddings")
  scaling = old.pop("rope_parameters", None)
  if scaling is None:
    return old
  if c["model_type"] in ("gemma4_text", "gemma4_unified_text", "laguna", "mellum", "mistral4",
                         "modernbert-decoder"):
    old["rope_parameters"] = c["rope_parameters"]  # no older version
    return old
  if "full_attention" in scaling:
    old["rope_local_base_freq"] = scaling["sliding_attention"]["rope_theta"]
    scaling = scaling["full_attention"]
    del old["layer_types"]
  partial = scaling.pop("partial_rotary_factor", None)
  theta = scaling.pop("rope_theta")
  if c["model_type"] in ("gpt_neox", "gpt_neox_japanese"):
    old["rotary_pct"], old["rotary_emb_base"] = partial, theta
    return old
  if partial is not None:
    old["partial_rotary_factor"] = partial
  old["rope_theta"] = theta
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
  is_scale = name.endswith(("norm.weight", "Norm.weight", "layer_scalar"))
  if is_scale or (".ln_" in name and name.endswith(".weight")):
    return np.float32(1) + unit * np.float32(0.1)
  if name.endswith("v_proj.output_max"):
    return np.full(count, np.inf, np.float32)
  if name.endswith(("_min", "_max")):
    size = np.float32(1.25) if "input_" in name else np.float32(0.3) + unit * np.float32(0.1)
    return np.full(count, size if name.endswith("_max") else -size, np.float32)
  if name.endswith("modality_router.weight"):
    amplitude = np.float32(amplitude) * np.float32(32)
  return unit * np.float32(amplitude)


TORCH_DTYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}


def fill(model, case, seed):
  names = [name for name, _ in (*model.named_parameters(), *model.named_buffers())]
  stored = ("experts.gate_up_proj", "experts.up_proj", "layer_scalar", "q_conv1d.weight")
  if any(name.endswith(stored) for name in names):
    return fill_as_stored(model, case, seed)
  for name, parameter in model.named_parameters():
    flat = values(name, parameter.numel(), seed, case["amplitude"]).reshape(parameter.shape)
    with torch.no_grad():
      parameter.copy_(torch.from_numpy(flat).to(TORCH_DTYPES[case["dtype"]]).float())
  stored = model.state_dict().keys()
  for name, buffer in model.named_buffers():
    if name in stored and buffer.is_floating_point():
      buffer.copy_(torch.from_numpy(
          values(name, buffer.numel(), seed, case["amplitude"])).reshape(buffer.shape))
  model.tie_weights()


def stored_shapes(model):
  """Returns the tensors stored in the model's checkpoint. Fused experts are stored one by one."""
  with tempfile.TemporaryDirectory() as folder:
    model.save_pretrained(folder)
    with safetensors.safe_open(pathlib.Path(folder, "model.safetensors"), "pt") as file:
      return {name: list(file.get_slice(name).get_shape()) for name in file.keys()}


def fill_as_stored(model, case, seed):
  tensors = {
      name: torch.from_numpy(
          values(name, math.prod(shape), seed, case["amplitude"]).reshape(shape))
      for name, shape in stored_shapes(model).items()}
  with tempfile.TemporaryDirectory() as folder:
    model.save_pretrained(folder)
    safetensors.torch.save_file(tensors, pathlib.Path(folder, "model.safetensors"),
                                metadata={"format": "pt"})
    read = type(model).from_pretrained(folder, dtype=torch.float32)
  model.load_state_dict(read.state_dict())


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
  """Returns the ids of prompt and continuation without a cache, and the smallest margin."""
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
  changes = dict(changes)
  old_keys = {k: changes.pop(k) for k in list(changes) if k not in DEFAULTS}
  case = {"name": name, "config": c, "old_config": {**old_config(c), **old_keys}, **DEFAULTS,
          **changes, "base_seed": seed, "amplitude": amplitude_of(c)}
  case["old_config"] = {k: v for k, v in case["old_config"].items() if v is not ABSENT}
  model = make_model(c)
  names = list(CASES)
  if names.index(name) > names.index(LAST_WITHOUT_LIST):
    case["tensors"] = stored_shapes(model)
  for extra in range(c.get("num_nextn_predict_layers", 0)):
    last = c["num_hidden_layers"] - 1
    case["tensors"] |= {n.replace(f".{last}.", f".{last + 1 + extra}."): shape
                        for n, shape in case["tensors"].items() if f".{last}." in n}
    case["tensors"][f"model.layers.{last + 1 + extra}.eh_proj.weight"] = [64, 128]
  # Stored under other names, which are read too.
  if c["model_type"] == "nemotron_h" and "n_routed_experts" not in c:
    case["tensors"] = {n: list(p.shape) for n, p in model.named_parameters()}
  # A case keeps its prompt, whatever is listed before it.
  committed = HERE / "data" / f"{name}.json"
  prompt = (json.loads(committed.read_text())["prompt"] if committed.exists()
            else prompt_of(c, zlib.crc32(name.encode()) % 97))
  if find_seeds:
    case["base_seed"] = pick_seed(model, case, prompt)
  fill(model, case, case["base_seed"])
  ids, margin = greedy(model, prompt)
  distinct = len(set(ids[len(prompt):]))
  if margin < MIN_MARGIN or distinct < MIN_DISTINCT:
    raise SystemExit(f"{name}: margin {margin:.4f}, {distinct} distinct: use --find-seeds")
  logits = model(input_ids=torch.tensor([ids]), use_cache=False).logits[0].double()

  # The same weights under the old config must give the same model.
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
  """Formats JSON with one key per line and one row of logits per line."""
  lines = []
  for key, value in case.items():
    if key == "logits":
      rows = ",\n  ".join(json.dumps(row, separators=(",", ":")) for row in value)
      lines.append(f'"logits": [\n  {rows}\n]')
    else:
      lines.append(f"{json.dumps(key)}: {json.dumps(value)}")
  return "{\n" + ",\n".join(lines) + "\n}\n"


def agree(a, b):
  """Equal up to the last bits of the reference's arithmetic."""
  if isinstance(a, float) or isinstance(b, float):
    return abs(a - b) <= 1e-5
  if isinstance(a, list):
    return len(a) == len(b) and all(agree(x, y) for x, y in zip(a, b))
  if isinstance(a, dict):
    return a.keys() == b.keys() and all(agree(a[k], b[k]) for k in a)
  return a == b


def run_tool(doc, cases, make_case, folder):
  """Command line: writes the files of the cases, or compares with the existing ones."""
  parser = argparse.ArgumentParser(description=doc,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--check", action="store_true")
  parser.add_argument("--find-seeds", action="store_true")
  parser.add_argument("--out", type=pathlib.Path, default=folder)
  parser.add_argument("names", nargs="*", metavar="NAME")
  arguments = parser.parse_args()
  torch.set_num_threads(1)
  transformers.utils.logging.set_verbosity_error()
  differ = 0
  for name in arguments.names or cases:
    case = make_case(name, arguments.find_seeds)
    path = arguments.out / f"{name}.json"
    if not arguments.check:
      path.write_text(text_of(case))
    elif not agree(json.loads(path.read_text()), json.loads(text_of(case))):
      print(f"{path} differs")
      differ += 1
  return 1 if differ else 0


if __name__ == "__main__":
  sys.exit(run_tool(__doc__, CASES, make, HERE / "data"))
