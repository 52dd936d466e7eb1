#!/usr/bin/env python3
"""Writes data/config_cases.json: transformers' reading of every key of the supported families.

  make_config_cases.py [--only MODEL_TYPE]... [--out FILE]

Needs transformers 5 and torch. Takes some small configs of each family (those of the goldens, in
the key styles of transformers 5 and of 4). Removes each key of the family's configuration class
and each key that any family reads, sets it to null, and sets it to other values. A case stores the
change in config.json, the resulting change in the config as transformers completes it, and true if
the model's logits change: with the same formula for the weights, over more tokens than any window.
Configs and models refused by transformers make no case. A key that a family's model does not read
makes the same case for each family: "variants" has them once, and a block's "without_effect" has
their numbers.

The test checks the converter: a config and its completed form give the same spec. A change without
an effect on the logits does not change the spec; any other change does, or the config is refused.
"""

import argparse
import copy
import dataclasses
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "golden"))

import torch
import transformers

import make_goldens
import make_encoder_goldens

T = 44  # tokens: more than the windows, chunks and original contexts of the configs
SOURCE_TOKENS = 12
# Configs of the goldens that are redundant within their family.
LEFT_OUT = ("bf16_sharded", "f16", "odd_sizes", "full_heads", "scan_biases", "untied", "yarn",
            "linear_rope", "layer_norm", "qkv_biases", "relative_bias_gated",
            "plain_layer_norm")
# From this golden on, the older keys only of families that have keys of their own.
FIRST_WITHOUT_OLD = "post_norms_windows"
WITH_OLD = ("one_norm_windows", "alibi")

# Never varied: keys of the base class, such as token ids.
SKIPPED = {"architectures", "model_type", "dtype", "torch_dtype", "transformers_version"} | {
    f.name for f in dataclasses.fields(transformers.PreTrainedConfig)}

# Keys that some family reads, with their test values.
VALUES = {
    "num_attention_heads": [2], "num_key_value_heads": [1, 4], "num_heads": [2], "head_dim": [32],
    "d_kv": [32], "hidden_size": [128], "hidden_act": ["relu", "gelu_pytorch_tanh"],
    "hidden_activation": ["relu", "gelu_pytorch_tanh"],
    "activation_function": ["relu", "gelu_pytorch_tanh"],
    "feed_forward_proj": ["relu", "gated-gelu"], "sliding_window": [5, None],
    "use_sliding_window": [True, False], "max_window_layers": [0, 2],
    "sliding_window_pattern": [2, "LG"], "_sliding_window_pattern": [2], "window_size": [5],
    "attention_chunk_size": [5], "attn_logit_softcapping": [2.0],
    "final_logit_softcapping": [2.0], "query_pre_attn_scalar": [60],
    "attention_bias": [True, False], "mlp_bias": [True, False], "use_bias": [True, False],
    "tie_word_embeddings": [True, False], "tie_embedding": [True, False],
    "rope_theta": [500.0], "rotary_emb_base": [500.0], "rope_local_base_freq": [500.0],
    "partial_rotary_factor": [0.5], "rotary_pct": [0.5],
    "rope_scaling": [{"rope_type": "linear", "factor": 4.0},
                     {"type": "yarn", "factor": 2.0, "original_max_position_embeddings": 16},
                     {"type": "dynamic", "factor": 2.0}],
    "rope_parameters": [{"rope_type": "default", "rope_theta": 500.0},
                        {"rope_type": "linear", "factor": 4.0},
                        {"rope_type": "yarn", "factor": 2.0}, {},
                        *({"rope_type": t, "rope_theta": 500.0, "factor": 4.0,
                           "partial_rotary_factor": 0.75} for t in ("default", "linear"))],
    "original_max_position_embeddings": [24],
    "no_rope_layers": [[0, 1, 1], []], "no_rope_layer_interval": [3],
    "moe_norm_min": [0.9], "use_bidirectional_attention": ["vision"],
    "num_kv_shared_layers": [0, 1], "attention_k_eq_v": [True, False],
    "num_experts": [4], "num_local_experts": [4], "num_experts_per_tok": [1],
    "norm_topk_prob": [True, False], "decoder_sparse_step": [2], "mlp_only_layers": [[0], []],
    "moe_layers": [[0], []], "interleave_moe_layer_step": [2], "swiglu_limit": [0.5],
    "attention_types": [[[["global"], 3]]], "attention_layers": [["global", "local", "local"]],
    "full_attn_idxs": [[0]], "layer_types": [],
    "attention_multiplier": [0.7], "embedding_multiplier": [3.0], "residual_multiplier": [0.3],
    "logits_scaling": [3.0], "time_step_rank": [8], "rms_norm_eps": [1e-2],
    "qk_layernorm": [True], "use_qk_norm": [True, False], "clip_qkv": [0.5],
    "parallel_attn": [True, False], "use_parallel_residual": [True, False],
    "multi_query": [True, False], "new_decoder_architecture": [True, False],
    "num_ln_in_parallel_attn": [1, 2], "num_kv_heads": [2], "alibi": [True],
    "bias": [True, False], "use_qkv_bias": [True, False], "attention_out_bias": [True, False],
    "use_post_norm": [False], "rotary_dim": [8], "logit_scale": [0.5], "no_bias": [False],
    "attn_config": [{"clip_qkv": 0.3}, {"softmax_scale": 0.7}, {"alibi": False}, {}],
    "do_layer_norm_before": [False], "enable_bias": [False], "word_embed_proj_dim": [32],
    "layer_norm_elementwise_affine": [False], "_remove_final_layer_norm": [True],
    "apply_residual_connection_post_layernorm": [True], "expansion_ratio": [2],
    "layer_norm_eps": [1e-2], "norm_eps": [1e-2], "layer_norm_epsilon": [1e-2],
    "block_auto_adjust_ff_dim": [True, False], "block_ff_dim": [80],
    "encoder_num_hidden_layers": [1], "decoder_num_hidden_layers": [2],
    "encoder_hidden_act": ["relu"], "decoder_hidden_act": ["relu"],
    "linear_num_key_heads": [1], "linear_num_value_heads": [8], "linear_key_head_dim": [16],
    "linear_value_head_dim": [8], "linear_conv_kernel_dim": [3], "full_attention_interval": [2],
    "time_step_limit": [[0.4, 0.8]], "mamba_n_groups": [2], "mamba_d_head": ["auto"],
    "attn_layer_indices": [[0, 2], []], "position_embedding_type": ["rope", "nope"],
    "ssm_multipliers": [[0.5, 0.6, 0.7, 0.8, 0.9]], "mlp_multipliers": [[0.5, 0.6]],
    "mamba_hidden_act": ["relu"], "mlp_hidden_act": ["silu"],
    "hybrid_override_pattern": ["M-*-M"], "time_step_min": [0.5],
    "altup_num_inputs": [2], "altup_active_idx": [1], "altup_correct_scale": [True, False],
    "num_decoder_layers": [2], "num_layers": [1], "num_hidden_layers": [2],
    "expert_selection_fn": ["softmax", "sigmoid"], "first_k_dense_replace": [0, 1],
    "shared_expert_combination_strategy": ["average", "sum"],
    "prefix_dense_sliding_window_pattern": [1, 2, 3],
}


def bases():
  """Maps names to raw configs."""
  found = {}
  names = list(make_goldens.CASES)
  newer = set(names[names.index(FIRST_WITHOUT_OLD):]) - set(WITH_OLD)
  for module in (make_goldens, make_encoder_goldens):
    for name, case in module.CASES.items():
      if name in LEFT_OUT:
        continue
      c = copy.deepcopy(case[0])
      if c["model_type"] in ("mixtral", "qwen3_moe"):
        c["sliding_window"] = 8
      if c["model_type"] in ("lfm2", "lfm2_moe"):
        c["num_hidden_layers"], c["layer_types"] = 3, ["conv", "full_attention", "conv"]
      if c["model_type"] == "gemma3_text":
        c["num_hidden_layers"], c["layer_types"] = 3, c["layer_types"][:3]
      found[name] = c
      old = make_goldens.old_config(c)
      if module is make_goldens:
        old |= {k: v for k, v in case[2].items() if k not in make_goldens.DEFAULTS}
        old = {k: v for k, v in old.items() if v is not make_goldens.ABSENT}
      if name in newer:
        continue
      if old.keys() - {"torch_dtype", "transformers_version"} != c.keys() - {"dtype"}:
        found[name + ", old keys"] = old
  return found


def inner_guesses(value):
  """Varies each key of a module's config."""
  module = transformers.models.t5gemma.configuration_t5gemma.T5GemmaModuleConfig
  for key in sorted({f.name for f in dataclasses.fields(module)} - SKIPPED | {"rope_theta"}):
    without = {k: v for k, v in value.items() if k != key}
    if key in value:
      yield without
    default = value.get(key, getattr(module(), key, None))
    for guess in [None, *guesses(key, default)]:
      if guess != value.get(key, ABSENT):
        yield {**without, key: guess}


def guesses(key, value):
  if key in ("encoder", "decoder") and isinstance(value, dict):
    return list(inner_guesses(value))
  if key in VALUES:
    values = VALUES[key]
  elif isinstance(value, bool):
    values = [not value]
  elif isinstance(value, int):
    values = [value * 2 if value else 1]
  elif isinstance(value, float):
    values = [value * 2 if value else 0.5]
  else:
    values = []
  if key == "layer_types" and isinstance(value, list):
    values = [value[::-1], value[1:] + value[:1], ["full_attention"] * len(value)]
  if key == "mlp_layer_types" and isinstance(value, list):
    values = [value[::-1], value[1:] + value[:1], ["sparse"] * len(value)]
  if key == "num_attention_heads_per_layer" and isinstance(value, list):
    values = [value[::-1], value[1:], value[0]]
  if key == "activation_sparsity_pattern" and isinstance(value, list):
    values = [value[::-1], [0.5] * len(value), value[1:], 0.5]
  if key == "intermediate_size" and isinstance(value, list):
    values = [value[::-1], value[0], value[1:]]
  return values


def complete(raw):
  return transformers.CONFIG_MAPPING[raw["model_type"]].from_dict(copy.deepcopy(raw))


@torch.no_grad()
def logits_of(raw, config):
  cls = getattr(transformers, raw["architectures"][0])
  model = cls._from_config(config, attn_implementation="eager", dtype=torch.float32).eval()
  for name, parameter in model.named_parameters():
    flat = make_goldens.values(name, parameter.numel(), 1, 0.3).reshape(parameter.shape)
    parameter.copy_(torch.from_numpy(flat))
  for name, buffer in model.named_buffers():
    if name.endswith("_bias"):  # of a router
      buffer.copy_(torch.from_numpy(make_goldens.values(name, buffer.numel(), 1, 0.3)))
  model.tie_weights()
  vocab = config.get_text_config().vocab_size
  ids = torch.tensor([[(37 * i * i + 11 * i + 5) % (vocab - 4) + 4 for i in range(T)]])
  if raw["model_type"] == "whisper":
    shape = (1, config.num_mel_bins, 2 * config.max_source_positions)
    source = {"input_features": torch.linspace(-1, 1, shape[1] * shape[2]).sin().reshape(shape)}
    return model(**source, decoder_input_ids=ids, use_cache=False).logits[0]
  if raw["model_type"] == "moonshine":
    samples = torch.linspace(0, 300, 3000).sin()[None]
    return model(input_values=samples, decoder_input_ids=ids, use_cache=False).logits[0]
  if config.is_encoder_decoder:
    return model(input_ids=ids[:, :SOURCE_TOKENS], decoder_input_ids=ids, use_cache=False).logits[0]
  return model(input_ids=ids, use_cache=False).logits[0]


def plain(config):
  """Returns the completed config as JSON."""
  return json.loads(json.dumps(config.to_dict(), default=str))


ABSENT = object()


def difference(base, other, case):
  """Returns a case's changes in the completed config, without the case's own value."""
  changed = {k: v for k, v in other.items() if k not in base or base[k] != v}
  gone = sorted(k for k in base if k not in other)
  if not changed and not gone:
    return {"same": True}
  if not gone and "value" in case and changed == {case["key"]: case["value"]}:
    return {}
  return {**({"set": changed} if changed else {}), **({"without": gone} if gone else {})}


def is_large(config):
  """True if sizes are the class's defaults."""
  parts = [getattr(config, name, config) for name in ("encoder", "decoder")]
  return any(c.num_hidden_layers > 8 or c.hidden_size > 512 or c.vocab_size > 2048
             for c in parts)


def cases_of(raw, base_config, base_logits):
  config_class = type(base_config)
  fields = {f.name for f in dataclasses.fields(config_class)}
  base_complete = plain(base_config)
  known = {json.dumps(base_complete, sort_keys=True): False}  # completed config -> has_effect
  for key in sorted((fields | VALUES.keys() | raw.keys()) - SKIPPED):
    variants = [ABSENT] if key in raw else []
    variants += [None] if raw.get(key, ABSENT) is not None else []
    variants += [v for v in guesses(key, raw.get(key, getattr(base_config, key, None)))
                 if v is not None and v != raw.get(key, ABSENT)]
    for value in variants:
      changed = {k: v for k, v in raw.items() if k != key}
      if value is not ABSENT:
        changed[key] = value
      try:
        config = complete(changed)
        whole = json.dumps(plain(config), sort_keys=True)
        if whole in known:
          has_effect = known[whole]
        elif is_large(config):
          has_effect = True
        else:
          logits = logits_of(changed, complete(changed))
          has_effect = not (logits.shape == base_logits.shape and torch.equal(logits, base_logits))
        known[whole] = has_effect
      except Exception as error:  # refused by transformers
        print("   ", key, "absent" if value is ABSENT else value, type(error).__name__,
              str(error).split("\n")[0][:90], file=sys.stderr)
        continue
      case = {"key": key}
      if value is not ABSENT:
        case["value"] = value
      case |= difference(base_complete, plain(config), case)
      case["effect"] = has_effect
      yield case


def line_of(value):
  return json.dumps(value, separators=(",", ":"))


def is_variant(case):
  """Without effect, and completed by its own value only."""
  return not case["effect"] and case.keys() == {"key", "value", "effect"}


def read_blocks(path):
  data = json.loads(path.read_text())
  for block in data["blocks"]:
    numbers = block.pop("without_effect")
    block["cases"] += [{**data["variants"][i], "effect": False} for i in numbers]
  return {block["name"]: block for block in data["blocks"]}


def text_of(blocks):
  numbers, texts = {}, []
  for block in blocks:
    cases = sorted(block["cases"], key=lambda c: (c["key"], "value" in c, line_of(c)))
    variants = [line_of({k: c[k] for k in ("key", "value")}) for c in cases if is_variant(c)]
    own = ",\n  ".join(line_of(c) for c in cases if not is_variant(c))
    listed = [numbers.setdefault(text, len(numbers)) for text in variants]
    texts.append(f'{{"name": {json.dumps(block["name"])},\n'
                 f' "config": {json.dumps(block["config"])},\n'
                 f' "completed": {json.dumps(block["completed"])},\n'
                 f' "without_effect": {line_of(listed)},\n "cases": [\n  {own}]}}')
  variants, texts = ",\n".join(numbers), ",\n".join(texts)
  return f'{{"variants": [\n{variants}],\n"blocks": [\n{texts}]}}\n'


def main():
  parser = argparse.ArgumentParser()
  parser.add_argument("--only", action="append", help="a model type; the others stay as they are")
  parser.add_argument("--out", type=pathlib.Path, default=HERE / "data" / "config_cases.json")
  arguments = parser.parse_args()
  torch.set_num_threads(1)
  transformers.utils.logging.set_verbosity_error()
  blocks = []
  kept = {}
  if arguments.only:
    kept = read_blocks(arguments.out)
  for name, raw in bases().items():
    if arguments.only and raw["model_type"] not in arguments.only:
      if name in kept:
        blocks.append(kept[name])
      continue
    config = complete(raw)
    cases = list(cases_of(raw, config, logits_of(raw, complete(raw))))
    print(f"{name}: {len(cases)} cases, {sum(c['effect'] for c in cases)} with effect",
          file=sys.stderr)
    blocks.append({"name": name, "config": raw, "completed": plain(config), "cases": cases})
  arguments.out.write_text(text_of(blocks))


if __name__ == "__main__":
  sys.exit(main())
