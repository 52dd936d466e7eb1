#!/usr/bin/env python3
"""Writes data/beams/searches.json: the results of transformers' generate() with beam search.

  make_beam_goldens.py FOLDER [--check] [--out FILE]

Needs transformers 5 and torch. FOLDER holds the reference checkpoints (llama_tied, qwen3, ...; each
with a golden.json of prompts). Adds stop token ids to the checkpoint's own, so that beams reach
them; the file lists them. Skips searches whose result depends on rounding (see is_clear).
"""

import argparse
import collections
import json
import os
import pathlib

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import torch
import transformers

OUT = pathlib.Path(__file__).parent / "data/beams/searches.json"
CHECKPOINTS = ("llama_tied", "llama_untied", "llama_bias_hd", "llama_linear", "llama_yarn",
               "llama3_rope", "qwen2", "qwen3")
OPTIONS = (
    dict(num_beams=2, max_new_tokens=12),
    dict(num_beams=4, max_new_tokens=16, num_return_sequences=4, length_penalty=2.0),
    dict(num_beams=5, max_new_tokens=20, num_return_sequences=3, early_stopping=True),
    dict(num_beams=3, max_new_tokens=24, num_return_sequences=3, early_stopping="never"),
    dict(num_beams=6, max_new_tokens=10, num_return_sequences=6, length_penalty=-0.5),
    dict(num_beams=4, max_new_tokens=24, num_return_sequences=2, length_penalty=0.0,
         early_stopping="never"),
)
MIN_GAP = 1e-4  # between the scores of sequences: far above rounding


def ends_of(model):
  """Stop token ids of a bundle: config.json's if generation_config.json has none."""
  ids = model.generation_config.eos_token_id
  if ids is None:
    ids = model.config.eos_token_id
  return [] if ids is None else ids if isinstance(ids, list) else [ids]


def search(model, prompt, options, ends):
  out = model.generate(
      torch.tensor([prompt]), attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
      do_sample=False, eos_token_id=ends or None, pad_token_id=0, return_dict_in_generate=True,
      output_scores=True, **options)
  found = []
  for row, score in zip(out.sequences.tolist(), out.sequences_scores.tolist()):
    ids = row[len(prompt):]
    for i, token in enumerate(ids):
      if token in ends:  # the rest is padding
        ids = ids[: i + 1]
        break
    found.append(dict(score=round(score, 6), ids=ids))
  return found


def is_clear(model, prompt, options, ends, found):
  """True if the scores are well separated and double precision gives the same result."""
  scores = [f["score"] for f in found]
  if any(a - b < MIN_GAP for a, b in zip(scores, scores[1:])):
    return False
  again = search(model.double(), prompt, options, ends)
  model.float()
  return [f["ids"] for f in again] == [f["ids"] for f in found]


def make(folder):
  cases = []
  for name in CHECKPOINTS:
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder / name, torch_dtype=torch.float32, attn_implementation="eager").eval()
    golden = json.loads((folder / name / "golden.json").read_text(encoding="utf-8"))
    for run in golden["runs"][:2]:
      prompt = run["prompt"]
      # Tokens that beams often reach.
      common = collections.Counter(run["no_cache"][len(prompt) + 2:]).most_common()
      common = [token for token, _ in common]
      for i, options in enumerate(OPTIONS):
        extra = common[: i % 4]
        ends = list(dict.fromkeys(ends_of(model) + extra))
        found = search(model, prompt, options, ends)
        if is_clear(model, prompt, options, ends, found):
          cases.append(dict(checkpoint=name, prompt=prompt, options=options, extra_eos=extra,
                            sequences=found))
  return cases


def main():
  parser = argparse.ArgumentParser()
  parser.add_argument("folder", type=pathlib.Path)
  parser.add_argument("--check", action="store_true", help="compare with what is there")
  parser.add_argument("--out", type=pathlib.Path, default=OUT)
  arguments = parser.parse_args()
  text = "[\n" + ",\n".join(json.dumps(c, sort_keys=True) for c in make(arguments.folder)) + "\n]\n"
  if arguments.check:
    if arguments.out.read_text(encoding="utf-8") != text:
      raise SystemExit(f"{arguments.out.name} is not what this makes")
  else:
    arguments.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
  main()
