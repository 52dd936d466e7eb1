#!/usr/bin/env python3
"""Writes data/cache/*.json: contents of transformers' KV caches, and the tokens generated from
them.

  make_cache_goldens.py [--references FOLDER] [--check] [--out DIR] [PART ...]

Needs transformers 5, torch and numpy. Each PART is a file:

  kv             K and V of make_goldens.py's checkpoints after prompt and continuation
  kv_references  the same for the reference checkpoints (FOLDER: llama_tied, mistral, ...)
  batch          a batch of three prompts of different lengths: left padding and position_ids
  window         prompts and continuations far beyond a window of 8

Prefills the prompt in one run and then runs token by token, as generate() does. kv stores the
contents of a DynamicCache without a config, which drops nothing. The script checks that caches
built from the config (DynamicCache, StaticCache: full and sliding layers) hold the same, and
stores the positions each layer holds. Floats are base64 of little-endian f32. --check compares
with the existing files.
"""

import argparse
import base64
import json
import math
import pathlib
import sys

from make_goldens import CASES, DEFAULTS, amplitude_of, fill, make_model, values

import numpy as np
import torch
import transformers

HERE = pathlib.Path(__file__).parent
REFERENCES = ("llama_tied", "llama_untied", "llama_bias_hd", "llama3_rope", "llama_yarn", "mistral",
              "qwen2", "qwen3", "gemma3", "gpt_neox")
SAME = 1e-5  # relative to the largest: caches of one library differ only by the rounding of sums
MIN_MARGIN = 0.005  # between the two largest logits on a greedy path: far above rounding
MIN_DISTINCT = 6
BATCH_CASES = ("llama3_rope", "window", "qk_norm")
BATCH_LENGTHS = (11, 26, 18)
BATCH_TOKENS = 16
WINDOW_CASES = ("window", "window_from_layer")
WINDOW_PROMPT, WINDOW_TOKENS = 50, 60


def floats(x):
  return base64.b64encode(np.ascontiguousarray(x, dtype="<f4").tobytes()).decode()


def seeded(name):
  c, seed, changes = CASES[name]
  model = make_model(c)
  fill(model, {**DEFAULTS, **changes, "amplitude": amplitude_of(c)}, seed)
  return model


def ints(n):
  return torch.tensor([n])


@torch.no_grad()
def run(model, ids, n_prompt, cache):
  """Fills `cache` as generate() does: the prompt, then token by token."""
  model(input_ids=ints(ids[:n_prompt]), past_key_values=cache, use_cache=True)
  for i in range(n_prompt, len(ids)):
    model(input_ids=ints([ids[i]]), past_key_values=cache, use_cache=True)
  return cache


def held(layer, n_tokens):
  """Returns keys, values and the positions [first, end) in a cache layer after n_tokens."""
  n = min(layer.keys.shape[2], n_tokens)
  # A static cache is longer than n_tokens.
  return layer.keys[0, :, :n], layer.values[0, :, :n], n_tokens - n, n_tokens


def compare_cache(model, ids, n_prompt, cache, everything):
  layers = []
  for layer, whole in zip(run(model, ids, n_prompt, cache).layers, everything.layers):
    k, v, first, end = held(layer, len(ids))
    for found, wanted in ((k, whole.keys[0]), (v, whole.values[0])):
      difference = float((found - wanted[:, first:end]).abs().max())
      if not difference <= SAME * max(1.0, float(wanted.abs().max())):
        raise SystemExit(f"{type(layer).__name__}: differs by {difference:.2e}")
    layers.append([type(layer).__name__, first, end])
  return layers


# Models whose layers all rotate neighbours; llama4_text, cohere2 and cohere2_moe do in some layers.
ROTATE_NEIGHBOURS = ("codegen", "cohere", "ernie4_5", "ernie4_5_moe", "glm", "glm4", "gptj",
                     "helium")


def rotates_neighbours(config, layer):
  if config.model_type == "llama4_text":
    return bool(config.no_rope_layers[layer])
  if config.model_type == "cohere2_moe" and config.prefix_dense_sliding_window_pattern == 1:
    is_dense = config.mlp_layer_types[layer] == "dense"
    return is_dense or config.layer_types[layer] == "sliding_attention"
  if config.model_type in ("cohere2", "cohere2_moe"):
    return config.layer_types[layer] == "sliding_attention"
  return config.model_type in ROTATE_NEIGHBOURS


def pairs_apart(config, layer, keys):
  """Reorders rotated neighbours (0, 1), (2, 3), ... to the bundle's layout: half of what is rotated
  apart. Heads that are rotated backwards have their halves exchanged."""
  if config.model_type == "nanochat":
    return torch.cat(keys.chunk(2, dim=-1)[::-1], dim=-1)
  if not rotates_neighbours(config, layer):
    return keys
  parameters = getattr(config, "rope_parameters", None) or {}
  fraction = parameters.get("partial_rotary_factor", 1.0)
  n = getattr(config, "rotary_dim", None) or int(keys.shape[-1] * fraction)
  return torch.cat([keys[..., 0:n:2], keys[..., 1:n:2], keys[..., n:]], dim=-1)


def make_kv(name, model, ids, n_prompt):
  everything = run(model, ids, n_prompt, transformers.DynamicCache())
  if any(type(layer).__name__ != "DynamicLayer" for layer in everything.layers):
    raise SystemExit(f"{name}: a cache without a config keeps everything")
  config = model.config
  caches = {}
  # Models with their own masks do not pass the window to the cache, and a static cache then gives
  # other results. Chunked attention in a static cache raises a TypeError (transformers 5.12).
  if getattr(config, "attention_chunk_size", None):
    # These caches reach one chunk length back, which includes positions no later token attends to.
    compare_cache(model, ids, n_prompt, transformers.DynamicCache(config=config), everything)
  elif model._can_compile_fullgraph and config.model_type != "bloom":  # its ALiBi has no such cache
    caches["DynamicCache"] = compare_cache(model, ids, n_prompt,
                                           transformers.DynamicCache(config=config), everything)
    caches["StaticCache"] = compare_cache(
        model, ids, n_prompt,
        transformers.StaticCache(config=config, max_cache_len=len(ids) + 9), everything)
  # Falcon 40B's cache repeats each kv head for all heads of its group.
  repeats = 1
  if getattr(config, "new_decoder_architecture", False):
    repeats = config.num_attention_heads // config.num_kv_heads
  keys = torch.stack([pairs_apart(config, i, layer.keys[0])[::repeats]
                      for i, layer in enumerate(everything.layers)])
  vals = torch.stack([layer.values[0][::repeats] for layer in everything.layers])
  n, head_dim = len(ids), keys.shape[-1]
  # The ends, both sides of the borders of pages of 8 and 16, and positions inside windows of 8 and
  # 16.
  positions = sorted({0, 1, 7, 8, 15, 16, 31, 32, n - 17, n - 16, n - 9, n - 8, n - 7, n - 3, n - 2,
                      n - 1})
  step = max(1, head_dim // 8 + (head_dim // 8 + 1) % 2)  # odd: covers every column of a SIMD
                                                          # register
  return {
      "checkpoint": name, "prompt": ids[:n_prompt], "rest": ids[n_prompt:], "positions": positions,
      "step": step, "shape": [keys.shape[0], keys.shape[1], len(positions),
                              math.ceil(head_dim / step)],
      "head_dim": head_dim, "caches": caches,
      "keys": floats(keys[:, :, positions, ::step]),
      "values": floats(vals[:, :, positions, ::step])}


def make_seeded_kv(_):
  cases = []
  for name in CASES:
    golden = json.loads((HERE / "data" / f"{name}.json").read_text())
    states = ("conv_kernel", "conv_L_cache", "linear_key_head_dim", "mamba_d_conv")
    model = seeded(name)
    types = getattr(model.config, "layer_types", None) or []
    if any(key in golden["config"] for key in states) or "linear_attention" in types:
      continue  # recurrent layers have no K and V
    if "global_head_dim" in golden["config"] or "kv_lora_rank" in golden["config"]:
      continue  # layers of two shapes; latents
    cases.append(make_kv(name, model, golden["prompt"] + golden["greedy"],
                         len(golden["prompt"])))
  return cases


def make_reference_kv(folder):
  if folder is None:
    raise SystemExit("kv_references needs --references FOLDER")
  cases = []
  for name in REFERENCES:
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder / name, dtype=torch.float32, attn_implementation="eager").eval()
    golden = json.loads((folder / name / "golden.json").read_text())
    longest = max(golden["runs"], key=lambda r: len(r["no_cache"]))
    cases.append(make_kv(name, model, longest["no_cache"], len(longest["prompt"])))
  return cases


@torch.no_grad()
def greedy(model, prompt, n):
  """Returns the continuation without a cache, its logits [n, vocab], and the smallest margin."""
  ids, rows, margin = list(prompt), [], math.inf
  for _ in range(n):
    rows.append(model(input_ids=ints(ids), use_cache=False).logits[0, -1])
    top = rows[-1].topk(2)
    margin = min(margin, float(top.values[0] - top.values[1]))
    ids.append(int(top.indices[0]))
  return ids[len(prompt):], torch.stack(rows), margin


def clear_prompt(model, n_prompt, n_new, taken):
  """Returns the first prompt whose greedy path does not depend on rounding."""
  vocab = model.config.vocab_size
  for number in range(200):
    if number in taken:
      continue
    unit = values(f"prompt {number}", n_prompt - 1, 0, 1.0)
    prompt = [1] + [4 + int((x + 1) / 2 * (vocab - 4)) for x in unit.tolist()]
    new, logits, margin = greedy(model, prompt, n_new)
    if margin >= MIN_MARGIN and len(set(new)) >= MIN_DISTINCT:
      taken.add(number)
      return prompt, new, logits
  raise SystemExit("no prompt of 200 has a clear greedy path")


@torch.no_grad()
def batched(model, prompts, n):
  """Returns greedy ids [n, prompts] and logits [n, prompts, vocab] of all prompts in one batch."""
  longest = max(len(p) for p in prompts)
  pad = [longest - len(p) for p in prompts]
  ids = torch.tensor([[0] * k + p for k, p in zip(pad, prompts)])
  mask = torch.tensor([[0] * k + [1] * len(p) for k, p in zip(pad, prompts)])
  positions = (mask.cumsum(-1) - 1).clamp(min=0)
  cache = transformers.DynamicCache(config=model.config)
  out_ids, out_logits = [], []
  for _ in range(n):
    logits = model(input_ids=ids, attention_mask=mask, position_ids=positions,
                   past_key_values=cache, use_cache=True).logits[:, -1]
    ids = logits.argmax(-1, keepdim=True)
    out_ids.append(ids[:, 0].tolist())
    out_logits.append(logits)
    mask = torch.cat([mask, torch.ones_like(ids)], dim=-1)
    positions = positions[:, -1:] + 1
  return out_ids, torch.stack(out_logits)


def make_batch(_):
  cases = []
  step = 13
  for name in BATCH_CASES:
    model = seeded(name)
    taken = set()
    alone = [clear_prompt(model, n, BATCH_TOKENS, taken) for n in BATCH_LENGTHS]
    ids, logits = batched(model, [prompt for prompt, _, _ in alone], BATCH_TOKENS)
    for i, (_, new, rows) in enumerate(alone):
      difference = float((logits[:, i] - rows).abs().max())
      if [row[i] for row in ids] != new or not difference <= 1e-4:
        raise SystemExit(f"{name}: sequence {i} differs from its own run by {difference:.2e}")
    cases.append({"checkpoint": name, "prompts": [prompt for prompt, _, _ in alone], "ids": ids,
                  "step": step, "logits": floats(logits[:, :, ::step])})
  return cases


@torch.no_grad()
def make_window(_):
  cases = []
  for name in WINDOW_CASES:
    model = seeded(name)
    prompt, new, _ = clear_prompt(model, WINDOW_PROMPT, WINDOW_TOKENS, set())
    for implementation in ("dynamic", "static"):
      found = model.generate(
          ints(prompt), attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
          do_sample=False, max_new_tokens=WINDOW_TOKENS, eos_token_id=None, pad_token_id=0,
          cache_implementation=implementation, disable_compile=True)
      if found[0, len(prompt):].tolist() != new:
        raise SystemExit(f"{name}: generate() with a {implementation} cache says something else")
    cases.append({"checkpoint": name, "prompt": prompt, "greedy": new})
  return cases


PARTS = {"kv": make_seeded_kv, "kv_references": make_reference_kv, "batch": make_batch,
         "window": make_window}


def text_of(cases):
  """Formats JSON with one key per line."""
  def one(case):
    return "{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in case.items()) + "\n}"
  return "[\n" + ",\n".join(one(case) for case in cases) + "\n]\n"


def agree(a, b):
  """Equal up to the last bits of the floats."""
  if isinstance(a, list):
    return isinstance(b, list) and len(a) == len(b) and all(agree(x, y) for x, y in zip(a, b))
  if not isinstance(a, dict):
    return a == b
  if a.keys() != b.keys():
    return False
  for key, value in a.items():
    if key in ("keys", "values", "logits"):
      x, y = (np.frombuffer(base64.b64decode(v), dtype="<f4") for v in (value, b[key]))
      if x.shape != y.shape or not np.abs(x - y).max() <= SAME:
        return False
    elif not agree(value, b[key]):
      return False
  return True


def main():
  parser = argparse.ArgumentParser(description=__doc__,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--references", type=pathlib.Path)
  parser.add_argument("--check", action="store_true")
  parser.add_argument("--out", type=pathlib.Path, default=HERE / "data/cache")
  parser.add_argument("parts", nargs="*", metavar="PART")
  arguments = parser.parse_args()
  torch.set_num_threads(1)
  transformers.utils.logging.set_verbosity_error()
  differ = 0
  for part in arguments.parts or PARTS:
    text = text_of(PARTS[part](arguments.references))
    path = arguments.out / f"{part}.json"
    print(f"{part}: {len(text)} bytes", flush=True)
    if not arguments.check:
      path.write_text(text)
    elif not agree(json.loads(path.read_text()), json.loads(text)):
      print(f"{path} differs")
      differ += 1
  return 1 if differ else 0


if __name__ == "__main__":
  sys.exit(main())
