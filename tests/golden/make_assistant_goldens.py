#!/usr/bin/env python3
"""Writes data/assistant/*.json: guesses of assistants that read a decoder's keys and values.

  make_assistant_goldens.py [--check] [--find-seeds] [--out DIR] [NAME ...]

Needs transformers 5, torch and numpy. Decoder, assistant and candidate generator are transformers'
(Gemma 4). Checkpoints, weights and the fields of a file are those of make_goldens.py, but logits
and argmax are the assistant's: GUESSES rows behind the first n tokens of the text, for each n of
`lengths`. The window's layer lends what its cache returns when token n - 2 has run: the keys that
this token sees.
"""

import copy
import math
import sys
import types

import torch
import transformers
from transformers.generation.candidate_generator import (
    SinglePositionMultiTokenCandidateGenerator)

from make_goldens import (
    CASES, DEFAULTS, HERE, MIN_DISTINCT, MIN_MARGIN, amplitude_of, fill, greedy, make_model,
    old_config, pick_seed, prompt_of, rounded, run_tool, stored_shapes)

GUESSES = 4
STRIDE = 7
# Assistants' weights are larger, so that their logits are clear of rounding.
AMPLITUDE = 0.35


def decoder(name, **changes):
  return {**copy.deepcopy(CASES[name][0]), **changes}


def assistant(c, clusters=None, **changes):
  """An assistant of this decoder, with a width and heads of its own."""
  text = {key: c[key] for key in (
      "model_type", "vocab_size", "head_dim", "global_head_dim", "sliding_window",
      "rope_parameters", "num_key_value_heads", "rms_norm_eps", "hidden_activation",
      "max_position_embeddings", "pad_token_id")}
  for key in ("num_global_key_value_heads", "attention_k_eq_v"):
    if key in c:
      text[key] = c[key]
  text |= {"hidden_size": 44, "intermediate_size": 52, "num_attention_heads": 6,
           "num_hidden_layers": 4, "num_kv_shared_layers": 4, "hidden_size_per_layer_input": 0,
           "vocab_size_per_layer_input": 0, "enable_moe_block": False, "use_double_wide_mlp": False,
           "final_logit_softcapping": None, "tie_word_embeddings": True,
           "layer_types": ["sliding_attention"] * 3 + ["full_attention"], **changes}
  unified = "unified_" if c["model_type"].startswith("gemma4_unified") else ""
  name = "Unified" if unified else ""
  out = {"architectures": [f"Gemma4{name}AssistantForCausalLM"],
         "model_type": f"gemma4_{unified}assistant", "dtype": "float32",
         "backbone_hidden_size": c["hidden_size"], "tie_word_embeddings": True,
         "use_ordered_embeddings": clusters is not None, "text_config": text}
  if clusters is not None:
    out["num_centroids"], out["centroid_intermediate_top_k"] = clusters
  return out


def with_clusters():
  c = decoder("per_layer_embeddings", vocab_size=510, vocab_size_per_layer_input=510)
  return c, assistant(c, (30, 5))


def of_all(name):
  c = decoder(name)
  return c, assistant(c)


# Decoder and assistant, and the seed.
PAIRS = {
    "plain_head": (*of_all("keys_are_values"), 11),
    "clusters": (*with_clusters(), 3),
    "unified": (*of_all("global_heads"), 2),
}


def order_of(c):
  """Tokens in the order of the clusters: some permutation."""
  vocab = c["text_config"]["vocab_size"]
  return sorted(range(vocab), key=lambda i: (i * 7919 + 13) % 1009 * vocab + i)


def outputs_of(model, c, ids):
  """Those of a run of all tokens but the last."""
  made = model(input_ids=torch.tensor([ids[:-1]]), use_cache=False, output_hidden_states=True,
               return_shared_kv_states=True)
  window = c["sliding_window"]
  lent = dict(made.shared_kv_states)
  lent["sliding_attention"] = tuple(x[:, :, -window:] for x in lent["sliding_attention"])
  return types.SimpleNamespace(hidden_states=[made.hidden_states[-1][:, -1:]],
                               shared_kv_states=lent)


def guess(model, c, helper, ids):
  """Returns the guesses behind ids, and their logits."""
  config = transformers.GenerationConfig(max_length=10**4, num_assistant_tokens=GUESSES)
  helper.generation_config.num_assistant_tokens = GUESSES
  generator = SinglePositionMultiTokenCandidateGenerator(
      torch.tensor([ids]), helper, model.get_input_embeddings(), config, {})
  found, logits = generator.get_candidates(
      torch.tensor([ids]), {}, outputs_of(model, c, ids), False, 0)
  return found[0, len(ids):].tolist(), logits[0].double()


@torch.no_grad()
def make(name, find_seeds):
  c, of_helper, seed = PAIRS[name]
  case = {"name": name, "config": c, "old_config": old_config(c), **DEFAULTS, "base_seed": seed,
          "amplitude": amplitude_of(c), "assistant_config": of_helper}
  model, helper = make_model(c), make_model(of_helper)
  case["tensors"] = stored_shapes(model)
  case["assistant_tensors"] = stored_shapes(helper)
  prompt = prompt_of(c, len(name))
  if find_seeds:
    case["base_seed"] = pick_seed(model, case, prompt)
  fill(model, case, case["base_seed"])
  case["assistant_amplitude"] = AMPLITUDE
  fill(helper, {**case, "amplitude": AMPLITUDE}, case["base_seed"] + 1)
  if of_helper["use_ordered_embeddings"]:
    case["token_order"] = order_of(of_helper)
    helper.masked_embedding.token_ordering.copy_(torch.tensor(case["token_order"]))
  ids, margin = greedy(model, prompt)
  if margin < MIN_MARGIN or len(set(ids[len(prompt):])) < MIN_DISTINCT:
    raise SystemExit(f"{name}: margin {margin:.4f}: use --find-seeds")
  lengths = [2, 3, 8, 9, 10, 17, len(prompt) + 1, len(ids)]
  guesses, rows = [], []
  for n in lengths:
    found, logits = guess(model, c, helper, ids[:n])
    guesses.append(found)
    rows.append(logits)
  logits = torch.cat(rows)
  case |= {
      "prompt": prompt,
      "greedy": ids[len(prompt):],
      "lengths": lengths,
      "guesses": guesses,
      "log_sum_exp": [rounded(x) for x in torch.logsumexp(logits, -1)],
      "argmax": logits.argmax(-1).tolist(),
      "positions": list(range(len(logits))),
      "stride": STRIDE,
      "logits": [[rounded(x) for x in row[::STRIDE]] for row in logits],
  }
  top = logits.topk(2).values
  print(f"{name:26s} seed {case['base_seed']} least margin of the assistant "
        f"{float((top[:, 0] - top[:, 1]).min()):.4f}", flush=True)
  return case


if __name__ == "__main__":
  sys.exit(run_tool(__doc__, PAIRS, make, HERE / "data" / "assistant"))
