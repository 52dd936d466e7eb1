#!/usr/bin/env python3
"""Writes data/encoder/*.json: small encoder-decoder checkpoints and transformers' results on them.

  make_encoder_goldens.py [--check] [--find-seeds] [--out DIR] [NAME ...]

Uses the formulas of make_goldens.py. Each case also has the encoder input: encoder_ids, or
feature_shape [width, frames] of features, which are the formula's values for the name "features".
Samples of audio are features with a width of 1.
"""

import sys

import torch

from make_goldens import (DEFAULTS, HERE, MIN_DISTINCT, MIN_MARGIN, NEW_TOKENS, fill, make_model,
                          old_config, rounded, run_tool, stored_shapes, values)


def t5(**changes):
  return {"architectures": ["T5ForConditionalGeneration"], "model_type": "t5", "vocab_size": 509,
          "d_model": 64, "d_kv": 24, "d_ff": 172, "num_heads": 4, "num_layers": 2,
          "num_decoder_layers": 3, "relative_attention_num_buckets": 8,
          "relative_attention_max_distance": 20, "layer_norm_epsilon": 1e-6,
          "feed_forward_proj": "relu", "is_encoder_decoder": True, "pad_token_id": 0,
          "eos_token_id": 1, "decoder_start_token_id": 0, "tie_word_embeddings": True,
          "dtype": "float32", **changes}


def t5gemma(encoder, decoder, **changes):
  module = {"model_type": "t5_gemma_module", "vocab_size": 509, "hidden_size": 64,
            "intermediate_size": 100, "num_hidden_layers": 3, "num_attention_heads": 4,
            "num_key_value_heads": 2, "head_dim": 24, "hidden_activation": "gelu_pytorch_tanh",
            "max_position_embeddings": 256, "rms_norm_eps": 1e-5, "query_pre_attn_scalar": 20,
            "attn_logit_softcapping": 8.0, "final_logit_softcapping": 12.0, "sliding_window": 8,
            "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}}
  return {"architectures": ["T5GemmaForConditionalGeneration"], "model_type": "t5gemma",
          "vocab_size": 509, "is_encoder_decoder": True, "pad_token_id": 0, "bos_token_id": 2,
          "eos_token_id": 1, "decoder_start_token_id": 2, "tie_word_embeddings": True,
          "encoder": module | encoder, "decoder": module | decoder, "dtype": "float32", **changes}


def moonshine(**changes):
  return {"architectures": ["MoonshineForConditionalGeneration"], "model_type": "moonshine",
          "vocab_size": 509, "hidden_size": 64, "intermediate_size": 100,
          "encoder_num_hidden_layers": 2, "decoder_num_hidden_layers": 3,
          "encoder_num_attention_heads": 4, "decoder_num_attention_heads": 4,
          "encoder_num_key_value_heads": 4, "decoder_num_key_value_heads": 4,
          "encoder_hidden_act": "gelu", "decoder_hidden_act": "silu",
          "max_position_embeddings": 64, "pad_head_dim_to_multiple_of": 8,
          "attention_bias": False, "is_encoder_decoder": True, "bos_token_id": 1,
          "eos_token_id": 2, "pad_token_id": None, "decoder_start_token_id": 1,
          "tie_word_embeddings": True, "dtype": "float32",
          "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0,
                              "partial_rotary_factor": 0.9}, **changes}


# Some cases divide logits by 8: their margins are smaller, but still far above rounding.
LEAST_MARGIN = {"relative_bias": 0.004, "relative_bias_of_layers": 0.004}
# name: (config, seed, amplitude of the weights, encoder tokens)
CASES = {
    "relative_bias": (t5(), 2, 0.45, 41),
    "relative_bias_gated": (
        t5(feed_forward_proj="gated-gelu", d_ff=100, scale_decoder_outputs=False), 8, 0.25, 7),
    "relative_bias_untied": (
        t5(architectures=["MT5ForConditionalGeneration"], model_type="mt5", num_layers=3,
           feed_forward_proj="gated-gelu", d_ff=100, tie_word_embeddings=False), 2, 0.25, 9),
    "relative_bias_of_layers": (
        t5(architectures=["UMT5ForConditionalGeneration"], model_type="umt5", num_layers=3,
           feed_forward_proj="gated-gelu", d_ff=100, tie_word_embeddings=True), 5, 0.3, 33),
    "windows_both_ways": (t5gemma({"num_hidden_layers": 2}, {}), 34, 0.3, 41),
    # No dimension is a multiple of a kernel's tile or vector size, and none is the decoder's.
    "windows_both_ways_wide": (
        t5gemma({"hidden_size": 90, "num_attention_heads": 5, "num_key_value_heads": 1,
                 "head_dim": 18, "intermediate_size": 76, "rms_norm_eps": 1e-4,
                 "attn_logit_softcapping": None, "attention_bias": True,
                 "layer_types": ["full_attention", "sliding_attention", "sliding_attention"],
                 "rope_parameters": {"rope_type": "linear", "factor": 4.0, "rope_theta": 5000.0}},
                {"hidden_size": 52, "num_attention_heads": 2, "num_key_value_heads": 1,
                 "head_dim": 26}, tie_word_embeddings=False), 1, 0.3, 27),
    "features": (
        {"architectures": ["WhisperForConditionalGeneration"], "model_type": "whisper",
         "vocab_size": 509, "d_model": 64, "num_mel_bins": 10, "encoder_layers": 2,
         "decoder_layers": 3, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
         "encoder_ffn_dim": 100, "decoder_ffn_dim": 172, "max_source_positions": 37,
         "max_target_positions": 64, "activation_function": "gelu", "scale_embedding": True,
         "is_encoder_decoder": True, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
         "decoder_start_token_id": 3, "tie_word_embeddings": True, "suppress_tokens": None,
         "begin_suppress_tokens": None, "dtype": "float32"}, 17, 0.3, 0),
    "samples": (moonshine(), 6, 0.3, 0),
    # No dimension is a multiple of a kernel's tile or vector size.
    "samples_odd": (
        moonshine(hidden_size=90, intermediate_size=76, encoder_num_hidden_layers=3,
                  decoder_num_hidden_layers=2, encoder_num_attention_heads=5,
                  decoder_num_attention_heads=5, encoder_num_key_value_heads=None,
                  decoder_num_key_value_heads=None, encoder_hidden_act="relu",
                  decoder_hidden_act="gelu", pad_head_dim_to_multiple_of=None,
                  attention_bias=True, tie_word_embeddings=False,
                  rope_parameters={"rope_type": "linear", "factor": 2.0, "rope_theta": 5000.0,
                                   "partial_rotary_factor": 0.6},
                  partial_rotary_factor=0.6), 16, 0.3, 0),
}
# Samples of audio: those of one row, and of several with a rest that makes no row.
N_SAMPLES = {"samples": 20000, "samples_odd": 895 + 383}


def encoder_input_of(c, n_tokens, n_samples, seed):
  """Returns the encoder input: the model's arguments, and the fields of the case."""
  if n_samples:
    samples = torch.from_numpy(values("features", n_samples, seed, 1.0))
    return {"input_values": samples[None]}, {"feature_shape": [1, n_samples]}
  if n_tokens:
    ids = [(29 * i * i + 7 * i + 3) % (c["vocab_size"] - 4) + 4 for i in range(n_tokens - 1)] + [1]
    return {"input_ids": torch.tensor([ids])}, {"encoder_ids": ids}
  shape = [c["num_mel_bins"], 2 * c["max_source_positions"]]
  features = values("features", shape[0] * shape[1], seed, 1.0).reshape(shape)
  return {"input_features": torch.from_numpy(features)[None]}, {"feature_shape": shape}


def prompt_of(c):
  start = c["decoder_start_token_id"]
  return [start] if c["model_type"] != "whisper" else [start, 17, 300, 5, 42]


@torch.no_grad()
def logits_of(model, encoder_input, ids):
  return model(**encoder_input, decoder_input_ids=torch.tensor([ids]), use_cache=False).logits[0]


def greedy(model, encoder_input, prompt):
  ids, margin = list(prompt), float("inf")
  for _ in range(NEW_TOKENS):
    top = logits_of(model, encoder_input, ids)[-1].topk(2)
    margin = min(margin, float(top.values[0] - top.values[1]))
    ids.append(int(top.indices[0]))
  return ids, margin


def make(name, find_seeds):
  c, seed, amplitude, n_tokens = CASES[name]
  model = make_model(c)
  prompt, shapes = prompt_of(c), stored_shapes(model)
  for seed in range(1, 400) if find_seeds else [seed]:
    case = {"name": name, "config": c, "old_config": old_config(c), **DEFAULTS, "base_seed": seed,
            "amplitude": amplitude, "tensors": shapes}
    fill(model, case, seed)
    encoder_input, fields = encoder_input_of(c, n_tokens, N_SAMPLES.get(name, 0), seed)
    ids, margin = greedy(model, encoder_input, prompt)
    distinct = len(set(ids[len(prompt):]))
    if margin >= LEAST_MARGIN.get(name, MIN_MARGIN) and distinct >= MIN_DISTINCT:
      break
  else:
    raise SystemExit(f"{name}: margin {margin:.4f}, {distinct} distinct: use --find-seeds")
  logits = logits_of(model, encoder_input, ids).double()
  old = make_model(case["old_config"])
  fill(old, case, seed)
  difference = float((logits_of(old, encoder_input, ids) - logits).abs().max())
  if difference > 1e-6:
    raise SystemExit(f"{name}: the old config gives other logits, by {difference:.2e}")
  stride = 7
  positions = sorted({0, 1, 7, 8, len(prompt) - 1, len(ids) - 2, len(ids) - 1})
  case |= fields | {
      "prompt": prompt, "greedy": ids[len(prompt):], "margin": rounded(margin),
      "log_sum_exp": [rounded(x) for x in torch.logsumexp(logits, -1)],
      "argmax": logits.argmax(-1).tolist(), "positions": positions, "stride": stride,
      "logits": [[rounded(x) for x in logits[p, ::stride]] for p in positions]}
  print(f"{name:20s} seed {seed:3d} margin {margin:.4f} distinct {distinct:2d} "
        f"logits {float(logits.min()):.2f}..{float(logits.max()):.2f}", flush=True)
  return case


if __name__ == "__main__":
  sys.exit(run_tool(__doc__, CASES, make, HERE / "data" / "encoder"))
