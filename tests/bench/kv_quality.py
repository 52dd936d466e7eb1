#!/usr/bin/env python3
"""Compares what quantised KV caches cost in quality: Arenite's, and llama.cpp's.

usage: kv_quality.py CHECKPOINT --text HELD_OUT.txt [--outliers FACTOR] [--bin build/release/bin]

Prints the mean KL divergence (nats per token) from the same model with f32 keys and values, over
windows of 512 tokens. Arenite's rows come from `arenite eval`: the last tokens (the residual) are
int8. llama.cpp's formats are emulated on transformers from their published definition (ggml):
blocks of 32 elements of a token's head, f16 scale d = x / -8 (q5_0: -16) of the element x of
largest magnitude, values floor(x / d + 8.5) (q5_0: 16.5), all tokens at once, keys after RoPE.
Blocks go across heads that are smaller (llama.cpp refuses those). Arenite's int4 is emulated
likewise, with all tokens quantised. "Rotated": keys, queries and values are multiplied by an
orthonormal Hadamard matrix of the head's size before, and back after.

--outliers plants channels of large keys that leave the float model as it is: in every KV head two
pairs of channels (RoPE rotates pairs) of the keys are multiplied and those of its queries divided
by FACTOR. Needs transformers, torch and safetensors.
"""

import argparse
import json
import os
import shutil
import subprocess
import tempfile

import torch
import transformers
from safetensors.torch import load_file, save_file

WINDOW = 512
GROUP = 64  # tokens of a range of keys, channels of one of values
OUTLIER_PAIRS = (1, 2)


def plant(source, folder, factor):
  """Writes a copy of a checkpoint in f32, with outliers unless factor is 1."""
  shutil.copytree(source, folder)
  with open(os.path.join(folder, "config.json")) as file:
    config = json.load(file)
  config["dtype"] = config["torch_dtype"] = "float32"
  with open(os.path.join(folder, "config.json"), "w") as file:
    json.dump(config, file)
  path = os.path.join(folder, "model.safetensors")
  weights = {name: w.float() for name, w in load_file(path).items()}
  heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
  dim = config.get("head_dim") or config["hidden_size"] // heads
  scale = torch.ones(dim)
  for pair in OUTLIER_PAIRS:
    scale[pair] = scale[pair + dim // 2] = factor
  for name, w in weights.items():
    if name.endswith("k_norm.weight"):
      w *= scale
    elif name.endswith("q_norm.weight"):
      w /= scale
    elif name.endswith("k_proj.weight") and name.replace("k_proj", "k_norm") not in weights:
      w *= scale.repeat(kv_heads)[:, None]
    elif name.endswith("q_proj.weight") and name.replace("q_proj", "q_norm") not in weights:
      w /= scale.repeat(heads)[:, None]
  save_file(weights, path, metadata={"format": "pt"})


def hadamard(n):
  """Returns the orthonormal Hadamard matrix of a power of two."""
  h = torch.ones(1, 1)
  while h.shape[0] < n:
    h = torch.cat((torch.cat((h, h), 1), torch.cat((h, -h), 1)))
  return h / n**0.5


def blocks(x, bits):
  """Rounds [batch, heads, tokens, dim] to llama.cpp's q4_0 or q5_0 and back."""
  half = 1 << (bits - 1)
  rows = x.transpose(1, 2).reshape(-1, 32)
  largest = rows.gather(1, rows.abs().argmax(1, keepdim=True))
  d = largest / -half
  inverse = torch.where(d == 0, torch.zeros_like(d), 1 / d)
  values = (rows * inverse + half + 0.5).floor().clamp(0, 2 * half - 1) - half
  batch, heads, tokens, dim = x.shape
  return (values * d.half().float()).reshape(batch, tokens, heads, dim).transpose(1, 2)


def ranges(x, over):
  """Rounds [batch, heads, tokens, dim] to Arenite's int4 and back, with ranges over GROUP
  numbers of dimension `over`."""
  parts = []
  for part in x.split(GROUP, over):
    least, most = part.amin(over, keepdim=True), part.amax(over, keepdim=True)
    scale = ((most - least) / 15).half().float()
    least = least.half().float()
    steps = torch.where(scale > 0, (part - least) / scale, torch.zeros_like(part))
    parts.append(steps.round().clamp(0, 15) * scale + least)
  return torch.cat(parts, over)


class RoundedCache(transformers.DynamicCache):
  """Returns keys and values as `rounds` would hold all of them."""

  def __init__(self, rounds, rotates):
    super().__init__()
    self.rounds, self.rotates = rounds, rotates

  def update(self, keys, values, layer, *rest, **named):
    keys, values = super().update(keys, values, layer, *rest, **named)
    if not self.rotates:
      return self.rounds(keys, True), self.rounds(values, False)
    turn = hadamard(keys.shape[-1])
    return self.rounds(keys @ turn, True) @ turn.T, self.rounds(values @ turn, False) @ turn.T


# Label and rounding of [batch, heads, tokens, dim], given whether they are keys.
ROUNDINGS = (("q4_0 (4.5 bits)", lambda x, is_keys: blocks(x, 4)),
             ("q5_0 (5.5 bits)", lambda x, is_keys: blocks(x, 5)),
             ("int4, no residual", lambda x, is_keys: ranges(x, 2 if is_keys else 3)))


def emulated(folder, ids):
  """Prints the mean KL of emulated caches, as they are and rotated."""
  model = transformers.AutoModelForCausalLM.from_pretrained(
      folder, dtype=torch.float32, attn_implementation="eager")
  for label, rounds in ROUNDINGS:
    sums, count = {False: 0.0, True: 0.0}, 0
    with torch.no_grad():
      for first in range(0, len(ids) - 1, WINDOW):
        window = torch.tensor([ids[first:first + WINDOW]])
        exact = model(window).logits.log_softmax(-1)
        for rotates in sums:
          found = model(window, past_key_values=RoundedCache(rounds, rotates))
          found = found.logits.log_softmax(-1)
          sums[rotates] += float((exact.exp() * (exact - found)).sum())
        count += window.shape[1]
    print(f"{label}: KL {sums[False] / count:.3g}; rotated {sums[True] / count:.3g}")


def ours(arguments, bundle, residual):
  """Returns the mean KL of Arenite's int4 keys and values."""
  report = json.loads(subprocess.run(
      [os.path.join(arguments.bin, "arenite"), "eval", bundle, "--file", arguments.text, "--kv",
       "int4", "--kv-residual", str(residual), "--against-kv", "f32", "--prefill-chunk", "8",
       "--context", str(WINDOW), "--json"], check=True,
      capture_output=True, text=True).stdout)
  return report["kl"]


def main():
  parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
  parser.add_argument("checkpoint")
  parser.add_argument("--text", required=True)
  parser.add_argument("--outliers", type=float, default=1.0, metavar="FACTOR")
  parser.add_argument("--bin", default="build/release/bin")
  arguments = parser.parse_args()
  torch.set_num_threads(2)
  with tempfile.TemporaryDirectory() as temporary:
    folder, bundle = os.path.join(temporary, "model"), os.path.join(temporary, "f32.arn")
    plant(arguments.checkpoint, folder, arguments.outliers)
    subprocess.run([os.path.join(arguments.bin, "arenite-convert"), folder, "-o", bundle, "-q",
                    "--weights", "f32"], check=True)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    with open(arguments.text, encoding="utf-8", newline="") as file:
      ids = tokenizer(file.read())["input_ids"]
    emulated(folder, ids)
    for residual in (128, 32):
      kl = ours(arguments, bundle, residual)
      print(f"int4, residual {residual}: KL {kl:.3g}")


if __name__ == "__main__":
  main()
