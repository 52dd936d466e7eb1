#!/usr/bin/env python3
"""A verdict for every language model class of transformers: right, refused, or wrong.

  family_matrix.py --bin build/release/bin [--doc docs/family-matrix.md] [MODEL_TYPE ...]

Needs transformers 5, torch and the built tools. For each class that transformers maps to causal or
sequence-to-sequence generation, and for the models that read images or sound beside text, it makes
a small checkpoint with random weights, converts it, and compares the logits of 40 tokens on the
CPU and reference backends with those of transformers. --doc writes the table; exit status 1: a
checkpoint converted and is wrong.
"""

import argparse
import array
import dataclasses
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import torch
import transformers
from transformers.models.auto import modeling_auto

TOKENS = 40  # more than the windows and chunks
TOLERANCE = 3e-4  # of the largest logit, at least 1
VOCAB = 131

# Keys of configuration classes with small values. Others keep their class's default.
SIZES = {
    **dict.fromkeys(("vocab_size", "vocab_size_per_layer_input", "decoder_vocab_size"), VOCAB),
    **dict.fromkeys(("hidden_size", "d_model", "n_embd", "emb_dim", "dim_model", "embedding_size",
                     "word_embed_proj_dim", "text_embed_dim", "dim"), 64),
    **dict.fromkeys(("num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers",
                     "decoder_layers", "num_encoder_layers", "num_decoder_layers",
                     "decoder_num_hidden_layers"), 3),
    **dict.fromkeys(("num_attention_heads", "n_head", "n_heads", "num_heads", "attention_heads",
                     "encoder_attention_heads", "decoder_attention_heads",
                     "decoder_num_attention_heads", "num_encoder_attention_heads",
                     "num_decoder_attention_heads"), 4),
    **dict.fromkeys(("num_key_value_heads", "num_kv_heads", "decoder_num_key_value_heads",
                     "num_global_key_value_heads"), 2),
    **dict.fromkeys(("intermediate_size", "d_ff", "ffn_dim", "encoder_ffn_dim", "decoder_ffn_dim",
                     "ffn_hidden_size", "block_ff_dim", "d_inner", "intermediate_size_mlp",
                     "dff", "shared_intermediate_size", "dense_intermediate_size"), 96),
    **dict.fromkeys(("head_dim", "d_kv", "kv_channels", "attention_head_dim", "v_head_dim"), 16),
    **dict.fromkeys(("max_position_embeddings", "n_positions", "max_sequence_length",
                     "max_seq_len", "max_target_positions", "max_source_positions"), 128),
    **dict.fromkeys(("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts",
                     "num_experts_per_layer"), 4),
    **dict.fromkeys(("num_experts_per_tok", "moe_k", "moe_topk", "num_experts_per_token"), 2),
    **dict.fromkeys(("moe_intermediate_size", "shared_expert_intermediate_size",
                     "expert_ffn_hidden_size", "moe_shared_expert_intermediate_size"), 32),
    "sliding_window": 16, "attention_chunk_size": 16, "window_size": 16, "rotary_dim": 8,
    "global_head_dim": 32, "hidden_size_per_layer_input": 8, "num_kv_shared_layers": 1,
    "laurel_rank": 8, "q_lora_rank": 32, "kv_lora_rank": 16, "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 8, "n_group": 1, "topk_group": 1, "first_k_dense_replace": 1,
    "num_dense_layers": 1, "linear_num_value_heads": 4, "linear_num_key_heads": 2,
    "linear_key_head_dim": 16, "linear_value_head_dim": 16, "state_size": 16, "mamba_d_state": 16,
    "mamba_n_heads": 8, "mamba_d_head": 16, "mamba_d_ssm": 128, "mamba_num_heads": 8,
    "mamba_head_dim": 16, "ssm_state_size": 16, "moe_num_shared_experts": 1,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1,
    "num_mel_bins": 8, "image_size": 28, "patch_size": 14,
}
# Keys of single model types.
OVERRIDES = {
    "mamba2": {"num_heads": 8, "head_dim": 16, "n_groups": 1},
    "codegen": {"n_head": 4, "rotary_dim": 8},
    "gpt_bigcode": {"n_inner": None}, "gpt2": {"n_inner": None},
    "gemma3n_text": {"intermediate_size": [96] * 3, "altup_num_inputs": 2,
                     "activation_sparsity_pattern": [0.5, 0.0, 0.0]},
    **dict.fromkeys(("deepseek_v2", "deepseek_v3", "glm4_moe_lite", "deepseek_v32",
                     "glm_moe_dsa"), {"head_dim": 8, "num_key_value_heads": 4}),
    "mistral4": {"num_key_value_heads": 4, "rope_parameters": {
        "rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0, "mscale": 1.0,
        "mscale_all_dim": 1.0, "original_max_position_embeddings": 16,
        "llama_4_scaling_beta": 0.1}},
    "dots1": {"n_shared_experts": 1, "max_window_layers": 1},
    **dict.fromkeys(("qwen2_vl_text", "qwen2_5_vl_text", "qwen2_5_omni_text", "glm4v_text",
                     "glm_ocr_text", "paddleocr_vl_text"),
                    {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4,
                                         "mrope_section": [2, 3, 3]}}),
    "ernie4_5_vl_moe_text": {"moe_intermediate_size": [32, 32],
                             "rope_parameters": {"rope_type": "default", "rope_theta": 1e4,
                                                 "mrope_section": [2, 3, 3]}},
    "glm4v_moe_text": {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4,
                                           "partial_rotary_factor": 0.5,
                                           "mrope_section": [1, 1, 2]}},
    "nemotron_h": {"n_groups": 2, "sliding_window": None},
    "mllama_text_model": {"num_hidden_layers": 4, "cross_attention_layers": [1, 3]},
    "aya_vision": {"vision_config": {"model_type": "siglip_vision_model", "hidden_size": 64,
                                     "num_attention_heads": 4, "num_hidden_layers": 2,
                                     "intermediate_size": 96, "image_size": 28,
                                     "patch_size": 14}},
    "modernbert-decoder": {"local_attention": 16},
    "longcat_flash": {"head_dim": 8, "num_key_value_heads": 4},
    "reformer": {"is_decoder": True, "axial_pos_shape": [8, 16], "axial_pos_embds_dim": [32, 32]},
    "xmod": {"default_language": "en_XX"},
    "aria_text": {"moe_num_shared_experts": 1},
    "t5_gemma_module": {"query_pre_attn_scalar": 24},
    "mellum": {"layer_types": ["sliding_attention", "full_attention", "sliding_attention"]},
    "youtu": {"head_dim": 8, "num_key_value_heads": 4},
    **dict.fromkeys(("gemma4_text", "gemma4_unified_text"), {
        "num_hidden_layers": 4, "layer_types": ["sliding_attention", "full_attention"] * 2,
        "rope_parameters": {"full_attention": {"rope_type": "proportional", "rope_theta": 1e6,
                                               "partial_rotary_factor": 0.25},
                            "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}}}),
    "afmoe": {"num_shared_experts": 1},
    "jamba": {"attn_layer_period": 2, "attn_layer_offset": 1, "mamba_dt_rank": 6},
    "bamba": {"attn_layer_indices": [1]},
    "granitemoehybrid": {"layer_types": ["mamba", "attention", "mamba"], "mamba_expand": 2},
    "zamba2": {"layers_block_type": ["mamba", "hybrid", "mamba"], "n_mamba_heads": 8},
    "ernie4_5_moe": {"moe_layer_start_index": 1, "moe_layer_end_index": 2},
    "vaultgemma": {"query_pre_attn_scalar": 16},
    "gpt_neo": {"attention_types": [[["global", "local"], 1], [["global"], 1]]},
    "lfm2": {"layer_types": ["conv", "full_attention", "conv"]},
    "lfm2_moe": {"layer_types": ["conv", "full_attention", "conv"]},
    "falcon_mamba": {"hidden_size": 64}, "stablelm": {"num_key_value_heads": 2},
    "moonshine": {"encoder_num_hidden_layers": 2, "encoder_num_attention_heads": 4,
                  "encoder_num_key_value_heads": 4, "decoder_num_key_value_heads": 4},
    "olmo_hybrid": {"layer_types": ["linear_attention", "full_attention", "linear_attention"]},
}


# Model types of decoders inside other models, where the configuration class does not say.
TEXT_TYPES = {
    "aya_vision": "cohere2", "cohere2_vision": "cohere2", "exaone4_5": "exaone4",
    "granite4_vision": "granite", "granite_speech": "granite", "granite_speech_plus": "granite",
    "fuyu": "persimmon", "lfm2_vl": "lfm2", "minicpmv4_6": "qwen3_5_text", "mistral3": "mistral4",
    "musicflamingo": "qwen2", "paligemma": "gemma", "qianfan_ocr": "qwen3",
    "vibevoice_asr": "qwen2",
}
# What a class's forward() wants beside text, or its code beside this tree: not made.
NEEDS = {
    **dict.fromkeys(("blip", "blip-2", "chameleon", "deepseek_ocr2", "emu3", "evolla", "florence2",
                     "idefics", "instructblip", "instructblipvideo", "kosmos-2", "pix2struct",
                     "pp_formulanet", "udop"), "images"),
    **dict.fromkeys(("cohere_asr", "dia", "kyutai_speech_to_text", "moonshine_streaming",
                     "musicgen", "musicgen_melody", "seamless_m4t", "seamless_m4t_v2",
                     "speech_to_text", "speecht5", "voxtral_realtime"), "sound"),
    **dict.fromkeys(("fast_vlm", "gemma3n", "perception_lm"), "timm"),
    **dict.fromkeys(("gemma4_assistant", "gemma4_unified_assistant"), "another model's states"),
    **dict.fromkeys(("encoder-decoder", "speech-encoder-decoder", "vision-encoder-decoder"),
                    "two other models"),
    "diffusion_gemma": "diffusion", "blt": "patches of bytes",
}


def fields_of(cls):
  return {f.name for f in dataclasses.fields(cls)} if dataclasses.is_dataclass(cls) else set()


def small(cls):
  """Returns keyword arguments for a small model of a configuration class."""
  arguments = {k: v for k, v in SIZES.items() if k in fields_of(cls)}
  arguments |= OVERRIDES.get(cls.model_type, {})
  for name, sub in getattr(cls, "sub_configs", {}).items():
    if isinstance(sub, type) and sub is not transformers.AutoConfig and name != "attn_config":
      arguments[name] = small(sub)
    elif name == "text_config":
      text_type = TEXT_TYPES.get(cls.model_type, "llama")
      arguments[name] = {"model_type": text_type, **small(transformers.CONFIG_MAPPING[text_type])}
  return arguments


@torch.no_grad()
def randomise(model, seed):
  """Gives every parameter a value that matters: zero biases and norms of 1 hide mistakes."""
  generator = torch.Generator().manual_seed(seed)
  for name, parameter in model.named_parameters():
    noise = torch.randn(parameter.shape, generator=generator)
    lower = name.lower()
    if parameter.ndim >= 2 and not lower.endswith(("a_log", "conv1d.weight")):
      is_table = "embed" in lower or "wte" in lower or "wpe" in lower
      parameter.copy_(noise * (0.3 if is_table else 1.2 / parameter[0].numel() ** 0.5))
    else:
      parameter.add_(noise * 0.1)
  model.tie_weights()


def ids_of(count, salt):
  return [(37 * i * i + 11 * i + salt) % (VOCAB - 4) + 4 for i in range(count)]


def checkpoint(class_name, config_class, folder):
  """Writes the checkpoint; returns its logits, its ids and the encoder's ids, or None."""
  torch.manual_seed(1)
  text_class = getattr(config_class, "sub_configs", {}).get("text_config")
  is_own = isinstance(text_class, type) and text_class is not transformers.AutoConfig
  if class_name.endswith("ForCausalLM") and is_own:
    config_class = text_class
  config = config_class(**small(config_class))
  model = getattr(transformers, class_name)._from_config(
      config, attn_implementation="eager", dtype=torch.float32).eval()
  randomise(model, 1)
  model.save_pretrained(folder)
  model = type(model).from_pretrained(folder, dtype=torch.float32,
                                      attn_implementation="eager").eval()
  ids = ids_of(TOKENS, 5)
  with torch.no_grad():
    if class_name == "WhisperForConditionalGeneration":
      shape = (1, config.num_mel_bins, 2 * config.max_source_positions)
      source = torch.linspace(-1, 1, shape[1] * shape[2]).mul(99).sin().reshape(shape)
      logits = model(input_features=source, decoder_input_ids=torch.tensor([ids]),
                     use_cache=False).logits[0]
      return logits, ids, source[0]
    if class_name == "MoonshineForConditionalGeneration":
      source = torch.linspace(-1, 1, 7000).mul(999).sin()[None]
      logits = model(input_values=source, decoder_input_ids=torch.tensor([ids]),
                     use_cache=False).logits[0]
      return logits, ids, source
    if config.is_encoder_decoder:
      source = ids_of(12, 9)
      logits = model(input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([ids]),
                     use_cache=False).logits[0]
      return logits, ids, source
    return model(input_ids=torch.tensor([ids]), use_cache=False).logits[0], ids, None


def run(*command):
  return subprocess.run(command, capture_output=True, text=True, timeout=300)


def last_line(result):
  lines = [line for line in (result.stderr or result.stdout).splitlines() if line.strip()]
  return re.sub(r"^(arenite-convert: )?(error: )?(\S*config\.json: )?", "",
                lines[-1]) if lines else "?"


def difference(bin_dir, folder, logits, ids, source):
  """Returns (largest difference, None), or (None, the reason for a refusal)."""
  bundle = str(folder / "model.arn")
  converted = run(f"{bin_dir}/arenite-convert", str(folder), "-o", bundle, "--weights", "f32")
  if converted.returncode != 0:
    return None, last_line(converted)
  worst = 0.0
  for backend in ("cpu", "reference"):
    out = str(folder / "logits")
    command = [f"{bin_dir}/arenite", "logits", bundle, "--prompt-ids", ",".join(map(str, ids)),
               "--out", out, "--kv", "f32", "--backend", backend]
    if isinstance(source, torch.Tensor):
      (folder / "features").write_bytes(source.numpy().tobytes())
      command += ["--features", str(folder / "features"),
                  "--features-shape", ",".join(map(str, source.shape))]
    elif source is not None:
      command += ["--encoder-ids", ",".join(map(str, source))]
    ran = run(*command)
    if ran.returncode != 0:
      return None, "converts, but does not run: " + last_line(ran)
    ours = array.array("f")
    ours.frombytes(pathlib.Path(out).read_bytes())
    ours = torch.tensor(ours).reshape(logits.shape)
    worst = max(worst, float((ours - logits).abs().max()))
  return worst, None


def verdict(bin_dir, model_type, class_name, config_class):
  """Returns (verdict, text)."""
  with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    try:
      logits, ids, source = checkpoint(class_name, config_class, folder)
    except Exception as error:  # pylint: disable=broad-except
      if model_type in NEEDS:
        return "not made", "needs " + NEEDS[model_type]
      return "not made", f"{type(error).__name__}: {str(error).splitlines()[0][:90]}"
    if not bool(torch.isfinite(logits).all()):
      return "not made", "the logits are not finite"
    error, reason = difference(bin_dir, folder, logits, ids, source)
  if error is None:
    return "refused", reason
  scale = max(1.0, float(logits.abs().max()))
  return ("right" if error < TOLERANCE * scale else "WRONG"), f"{error:.1e}"


def classes():
  """Yields (model type, class name, configuration class), each class once."""
  seen = set()
  for mapping in ("MODEL_FOR_CAUSAL_LM_MAPPING_NAMES",
                  "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES",
                  "MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING_NAMES",
                  "MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES"):
    for model_type, class_name in getattr(modeling_auto, mapping).items():
      if model_type == "pi0":  # makes movements; its default is several gigabytes
        continue
      if class_name in seen or model_type not in transformers.CONFIG_MAPPING:
        continue
      seen.add(class_name)
      yield model_type, class_name, transformers.CONFIG_MAPPING[model_type]


def shortened(reason):
  """The reason of a refusal in the width of a table."""
  found = re.search(r"architecture \S+ is not supported.*?(?:; its config has (.*))?$", reason)
  if found:
    keys = (found.group(1) or "").replace("fields of no supported architecture: ", "")
    return "no row" + (f"; unknown keys: {keys}" if keys else "")
  return reason.replace("|", "\\|")


def table(rows):
  text = ["# Every class", "",
          "Written by `tests/golden/family_matrix.py`: for each class of transformers "
          f"{transformers.__version__} that generates\ntext, a small checkpoint with random "
          "weights. Right: it converts, and the logits of 40 tokens differ\nby at most this, on "
          "both backends. Refused: by the converter, for this reason. Not made: its\nmodel needs "
          "more than text to run, or the script cannot make a small one.", ""]
  counts = {name: sum(r[2] == name for r in rows) for name in ("right", "refused", "not made")}
  text += [", ".join(f"{n} {name}" for name, n in counts.items()) + ".", "",
           "| class | verdict | |", "|---|---|---|"]
  text += [f"| `{c}` | {v} | {shortened(t)} |" for _, c, v, t in sorted(rows, key=lambda r: r[1])]
  return "\n".join(text) + "\n"


def main():
  parser = argparse.ArgumentParser(description=__doc__,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--bin", required=True, help="folder of arenite and arenite-convert")
  parser.add_argument("--doc", type=pathlib.Path)
  parser.add_argument("types", nargs="*", metavar="MODEL_TYPE")
  arguments = parser.parse_args()
  torch.set_num_threads(1)
  transformers.utils.logging.set_verbosity_error()
  rows = []
  for model_type, class_name, config_class in classes():
    if arguments.types and model_type not in arguments.types:
      continue
    row = (model_type, class_name, *verdict(arguments.bin, model_type, class_name,
                                                config_class))
    print(f"{model_type:24s} {class_name:40s} {row[2]:8s} {row[3][:150]}", flush=True)
    rows.append(row)
  if arguments.doc:
    arguments.doc.write_text(table(rows))
  return 1 if any(row[2] == "WRONG" for row in rows) else 0


if __name__ == "__main__":
  sys.exit(main())
