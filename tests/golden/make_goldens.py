#!/usr/bin/env python3
"""Writes data/*.json: small checkpoints with seeded weights, and transformers' results on them.

  make_goldens.py [--check] [--find-seeds] [--out DIR] [NAME ...]

Needs transformers 5, torch and numpy. Each file holds config.json in the key style of
transformers 5 and of 4, the seed of the weights (the formula of tests/support/tiny_checkpoint.h,
implemented again here), a prompt, and the greedy continuation. For the teacher-forced logits over
both it holds the log-sum-exp and the argmax of every position, and every n-th logit of some
positions. --check compares with the existing files. --find-seeds replaces each seed of the table
by the first one whose greedy path is clear (see pick_seed).
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
import safetensors.torch
import torch
import transformers

HERE = pathlib.Path(__file__).parent
NEW_TOKENS = 24
MIN_MARGIN = 0.02  # between the two largest logits on the greedy path: far above rounding
MIN_DISTINCT = 8  # distinct tokens on the greedy path: a repeating one proves little

ABSENT = object()  # value that removes the key


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


def layer_norm_config(architecture, model_type, epsilon_key, **changes):
  """Config for families with LayerNorm: no head_dim, no RMSNorm."""
  return config(architecture, model_type, head_dim=ABSENT, rms_norm_eps=ABSENT,
                **{epsilon_key: 1e-5}, **changes)


def scan_config(**changes):
  """Config for families with a convolution and a selective scan per layer."""
  c = {
      "architectures": ["MambaForCausalLM"], "model_type": "mamba", "vocab_size": 509,
      "hidden_size": 64, "num_hidden_layers": 3, "expand": 2, "intermediate_size": 128,
      "state_size": 16, "conv_kernel": 4, "time_step_rank": 4, "hidden_act": "silu",
      "layer_norm_epsilon": 1e-5, "use_bias": False, "use_conv_bias": True,
      "residual_in_fp32": True, "tie_word_embeddings": True, "bos_token_id": 1, "eos_token_id": 2,
      "pad_token_id": 0, "dtype": "float32",
  }
  return {**c, **changes}


def gpt_config(architecture, model_type, **changes):
  """Config with the keys of GPT-2."""
  c = {
      "architectures": [architecture], "model_type": model_type, "vocab_size": 509, "n_embd": 64,
      "n_head": 4, "n_layer": 3, "n_inner": None, "n_positions": 256, "layer_norm_epsilon": 1e-5,
      "activation_function": "gelu_new", "bos_token_id": 1, "eos_token_id": 2, "dtype": "float32",
  }
  return {**c, **changes}


LLAMA = ("LlamaForCausalLM", "llama")
MISTRAL = ("MistralForCausalLM", "mistral")
QWEN2 = ("Qwen2ForCausalLM", "qwen2")
QWEN3 = ("Qwen3ForCausalLM", "qwen3")

# name -> (config, seed, overrides of the defaults below)
CASES = {
    "tied": (config(*LLAMA, tie_word_embeddings=True, head_dim=ABSENT), 1, {}),
    "untied": (config(*LLAMA, rope_parameters=rope(500000.0)), 3, {}),
    # No dimension is a multiple of a kernel's tile or vector size.
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
    "sandwich_softcap": (
        config("Gemma2ForCausalLM", "gemma2", tie_word_embeddings=True, head_dim=24,
               hidden_act=ABSENT, hidden_activation="gelu_pytorch_tanh", query_pre_attn_scalar=20,
               attn_logit_softcapping=8.0, final_logit_softcapping=12.0, sliding_window=8), 6, {}),
    "two_ropes": (
        config("Gemma3ForCausalLM", "gemma3_text", tie_word_embeddings=True, head_dim=24,
               hidden_act=ABSENT, hidden_activation="gelu_pytorch_tanh", query_pre_attn_scalar=20,
               sliding_window=8, num_hidden_layers=4,
               layer_types=["sliding_attention", "sliding_attention", "full_attention",
                            "sliding_attention"],
               rope_parameters={
                   "full_attention": rope(1000000.0, rope_type="linear", factor=8.0),
                   "sliding_attention": rope(10000.0)}), 1, {"sliding_window_pattern": 3}),
    "fused_projections": (
        config("Phi3ForCausalLM", "phi3", head_dim=ABSENT, pad_token_id=0, sliding_window=None,
               rope_parameters=rope(partial_rotary_factor=0.5)), 1, {}),
    "parallel_residual": (
        layer_norm_config("GPTNeoXForCausalLM", "gpt_neox", "layer_norm_eps", hidden_act="gelu",
                          num_key_value_heads=ABSENT, use_parallel_residual=True,
                          attention_bias=True, rope_parameters=rope(partial_rotary_factor=0.25)),
        5, {}),
    "layer_norm": (
        layer_norm_config("GPTNeoXForCausalLM", "gpt_neox", "layer_norm_eps", hidden_act="gelu",
                          num_key_value_heads=ABSENT, use_parallel_residual=False,
                          attention_bias=True, rope_parameters=rope(partial_rotary_factor=1.0)),
        2, {}),
    "learned_positions": (
        {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "vocab_size": 509,
         "n_embd": 64, "n_head": 4, "n_layer": 3, "n_inner": None, "n_positions": 256,
         "layer_norm_epsilon": 1e-5, "activation_function": "gelu_new",
         "tie_word_embeddings": True, "bos_token_id": 1, "eos_token_id": 2, "dtype": "float32"},
        1, {}),
    "some_layers_rotate": (
        config("SmolLM3ForCausalLM", "smollm3", tie_word_embeddings=True, head_dim=ABSENT,
               pad_token_id=0, no_rope_layers=[1, 0, 1], no_rope_layer_interval=2,
               use_sliding_window=False, sliding_window=None), 1, {}),
    "multipliers": (
        config("GraniteForCausalLM", "granite", head_dim=ABSENT, attention_multiplier=0.3,
               embedding_multiplier=5.0, residual_multiplier=0.6, logits_scaling=0.5), 1, {}),
    "post_norms": (
        config("Olmo2ForCausalLM", "olmo2", head_dim=ABSENT, pad_token_id=0), 8, {}),
    "plain_feed_forward": (
        layer_norm_config("Starcoder2ForCausalLM", "starcoder2", "norm_epsilon",
                          tie_word_embeddings=True, hidden_act="gelu_pytorch_tanh", use_bias=True,
                          sliding_window=8), 1, {}),
    # Prompt and continuation exceed the original context, as in a session with a longer one.
    "long_rope": (
        config("Phi3ForCausalLM", "phi3", head_dim=ABSENT, pad_token_id=0, sliding_window=None,
               original_max_position_embeddings=20,
               rope_parameters=rope(rope_type="longrope", original_max_position_embeddings=20,
                                    short_factor=[1.0 + 0.1 * i for i in range(8)],
                                    long_factor=[1.0 + 0.6 * i for i in range(8)])), 7, {}),
    "experts": (
        config("MixtralForCausalLM", "mixtral", head_dim=ABSENT, num_local_experts=5,
               num_experts_per_tok=2, sliding_window=None), 1, {}),
    "experts_in_some_layers": (
        config("Qwen3MoeForCausalLM", "qwen3_moe", head_dim=16, num_experts=6,
               num_experts_per_tok=3, moe_intermediate_size=52, norm_topk_prob=False,
               mlp_only_layers=[1], decoder_sparse_step=1), 8, {}),
    "local_layers": (
        {"architectures": ["GPTNeoForCausalLM"], "model_type": "gpt_neo", "vocab_size": 509,
         "hidden_size": 64, "num_heads": 4, "num_layers": 3, "intermediate_size": None,
         "attention_types": [[["local", "global"], 1], [["local"], 1]],
         "attention_layers": ["local", "global", "local"], "window_size": 8,
         "max_position_embeddings": 256, "layer_norm_epsilon": 1e-5,
         "activation_function": "gelu_new", "tie_word_embeddings": True, "bos_token_id": 1,
         "eos_token_id": 2, "dtype": "float32"}, 1, {}),
    "sinks": (
        config("GptOssForCausalLM", "gpt_oss", num_local_experts=5, num_experts_per_tok=2,
               intermediate_size=52, sliding_window=9, attention_bias=True, pad_token_id=0,
               layer_types=["sliding_attention", "full_attention", "sliding_attention"],
               rope_parameters=rope(150000.0, rope_type="yarn", factor=4.0, beta_fast=32.0,
                                    beta_slow=1.0, truncate=False,
                                    original_max_position_embeddings=32)), 12, {}),
    "chunks": (
        config("Llama4ForCausalLM", "llama4_text", num_local_experts=3, num_experts_per_tok=2,
               intermediate_size=52, intermediate_size_mlp=172, attention_chunk_size=16,
               use_qk_norm=True, attn_temperature_tuning=True, floor_scale=8, attn_scale=0.3,
               no_rope_layers=[1, 0, 1], moe_layers=[1, 2], interleave_moe_layer_step=1,
               attention_bias=False, pad_token_id=0,
               layer_types=["chunked_attention", "full_attention", "chunked_attention"],
               rope_parameters=rope(500000.0)), 3, {}),
    # No dimension is a multiple of a kernel's tile or vector size.
    "scan": (scan_config(hidden_size=44, expand=3, intermediate_size=132, state_size=5,
                         conv_kernel=3, time_step_rank=7), 91, {}),
    "scan_biases": (scan_config(use_bias=True, use_conv_bias=False, time_step_rank="auto",
                                tie_word_embeddings=False), 51, {}),
    "short_convolutions": (
        config("Lfm2ForCausalLM", "lfm2", tie_word_embeddings=True, head_dim=ABSENT,
               hidden_act=ABSENT, rms_norm_eps=ABSENT, norm_eps=1e-5, pad_token_id=0,
               num_hidden_layers=4, conv_bias=True, conv_L_cache=4, block_multiple_of=20,
               block_ffn_dim_multiplier=1.3, block_auto_adjust_ff_dim=True,
               layer_types=["conv", "full_attention", "conv", "conv"],
               rope_parameters=rope(1000000.0)), 7, {}),
    "scaled_embedding": (
        config("GemmaForCausalLM", "gemma", hidden_act="gelu_pytorch_tanh", num_key_value_heads=1,
               tie_word_embeddings=True, head_dim=24, attention_bias=False), 1, {}),
    "rotated_neighbours": (
        config("Ernie4_5ForCausalLM", "ernie4_5", use_bias=True, head_dim=24,
               rope_parameters=rope(500000.0)), 1, {}),
    "post_norms_windows": (
        config("Olmo3ForCausalLM", "olmo3", head_dim=ABSENT, pad_token_id=0, sliding_window=9,
               num_attention_heads=8, rope_parameters=rope(
                   500000.0, rope_type="yarn", factor=4.0, beta_fast=32.0, beta_slow=1.0,
                   attention_factor=1.2, original_max_position_embeddings=64),
               layer_types=["sliding_attention", "full_attention", "sliding_attention"]), 1, {}),
    "windowed_layers_rotate": (
        config("Exaone4ForCausalLM", "exaone4", head_dim=24, num_attention_heads=5,
               num_key_value_heads=1, sliding_window=9, sliding_window_pattern="LLG",
               layer_types=["sliding_attention", "sliding_attention", "full_attention"],
               rope_parameters=rope(1000000.0, rope_type="llama3", factor=16.0,
                                    low_freq_factor=1.0, high_freq_factor=4.0,
                                    original_max_position_embeddings=32)), 1, {}),
    "input_biases": (
        config("SeedOssForCausalLM", "seed_oss", head_dim=24, attention_bias=True,
               attention_out_bias=False, mlp_bias=False, pad_token_id=0), 1, {}),
    "relu_squared": (
        config("ArceeForCausalLM", "arcee", hidden_act="relu2", head_dim=20, mlp_bias=True,
               rope_parameters=rope(rope_type="yarn", factor=8.0, beta_fast=32.0, beta_slow=1.0,
                                    mscale=1.0, original_max_position_embeddings=32)), 1, {}),
    "neighbours_of_all_heads": (
        config("HeliumForCausalLM", "helium", hidden_size=66, head_dim=22, num_attention_heads=3,
               num_key_value_heads=3, rms_norm_eps=1e-8, pad_token_id=0,
               rope_parameters=rope(100000.0)), 1, {}),
    "neighbours_of_a_part": (
        config("GlmForCausalLM", "glm", head_dim=24, attention_bias=True, rms_norm_eps=1.5625e-7,
               pad_token_id=0, rope_parameters=rope(partial_rotary_factor=0.5)), 1, {}),
    "neighbours_sandwich": (
        config("Glm4ForCausalLM", "glm4", head_dim=24, num_attention_heads=6,
               attention_bias=False, rms_norm_eps=1.5625e-7, pad_token_id=0,
               rope_parameters=rope(partial_rotary_factor=0.5)), 1, {}),
    "one_norm": (
        layer_norm_config("CohereForCausalLM", "cohere", "layer_norm_eps", logit_scale=0.25,
                          tie_word_embeddings=True, pad_token_id=0,
                          rope_parameters=rope(500000.0)), 1, {}),
    "one_norm_windows": (
        layer_norm_config("Cohere2ForCausalLM", "cohere2", "layer_norm_eps", logit_scale=0.25,
                          tie_word_embeddings=True, pad_token_id=0, sliding_window=9,
                          num_hidden_layers=4, attention_bias=True,
                          layer_types=["sliding_attention", "sliding_attention",
                                       "sliding_attention", "full_attention"],
                          rope_parameters=rope(50000.0)), 1,
        {"layer_types": ABSENT, "sliding_window_pattern": 4}),
    "head_bias": (
        layer_norm_config("PhiForCausalLM", "phi", "layer_norm_eps", hidden_act="gelu_new",
                          num_key_value_heads=4, hidden_size=80, qk_layernorm=False,
                          rope_parameters=rope(partial_rotary_factor=0.4)), 1, {}),
    "gated_layer_norm": (
        layer_norm_config("StableLmForCausalLM", "stablelm", "layer_norm_eps", use_qkv_bias=True,
                          use_parallel_residual=False, qk_layernorm=False,
                          rope_parameters=rope(partial_rotary_factor=0.25)), 1, {}),
    "gated_one_norm": (
        layer_norm_config("StableLmForCausalLM", "stablelm", "layer_norm_eps", use_qkv_bias=False,
                          use_parallel_residual=True, qk_layernorm=False,
                          rope_parameters=rope(partial_rotary_factor=0.25)), 1, {}),
    "layer_norm_less_one": (
        config("NemotronForCausalLM", "nemotron", hidden_act="relu2", head_dim=24,
               rms_norm_eps=ABSENT, norm_eps=1e-5, mlp_bias=True,
               rope_parameters=rope(partial_rotary_factor=0.5)), 1, {}),
    "plain_layer_norm": (
        config("OlmoForCausalLM", "olmo", head_dim=ABSENT, rms_norm_eps=ABSENT, pad_token_id=0,
               clip_qkv=None), 1, {}),
    "multi_query": (
        config("FalconForCausalLM", "falcon", head_dim=ABSENT, rms_norm_eps=ABSENT,
               hidden_act=ABSENT, num_key_value_heads=ABSENT, intermediate_size=ABSENT,
               layer_norm_epsilon=1e-5, activation="gelu", ffn_hidden_size=172,
               num_attention_heads=4, multi_query=True, parallel_attn=True, bias=False,
               alibi=False, new_decoder_architecture=False, tie_word_embeddings=True), 1, {}),
    "grouped_heads": (
        config("FalconForCausalLM", "falcon", head_dim=ABSENT, rms_norm_eps=ABSENT,
               hidden_act=ABSENT, num_key_value_heads=ABSENT, intermediate_size=ABSENT,
               layer_norm_epsilon=1e-5, activation="gelu", num_attention_heads=8, num_kv_heads=2,
               parallel_attn=True, bias=True, alibi=False, new_decoder_architecture=True,
               tie_word_embeddings=False), 1, {}),
    "sequential_heads": (
        config("FalconForCausalLM", "falcon", head_dim=ABSENT, rms_norm_eps=ABSENT,
               hidden_act=ABSENT, num_key_value_heads=ABSENT, intermediate_size=ABSENT,
               layer_norm_epsilon=1e-5, activation="gelu", num_attention_heads=4,
               multi_query=False, parallel_attn=False, bias=True, alibi=False,
               new_decoder_architecture=False, tie_word_embeddings=True), 1, {}),
    "rotary_dim": (
        gpt_config("GPTJForCausalLM", "gptj", rotary_dim=6, tie_word_embeddings=False), 1, {}),
    "sharded_heads": (
        gpt_config("CodeGenForCausalLM", "codegen", rotary_dim=4, n_head=8, n_ctx=256,
                   n_inner=100, tie_word_embeddings=False), 1, {}),
    "multi_query_positions": (
        gpt_config("GPTBigCodeForCausalLM", "gpt_bigcode", multi_query=True,
                   activation_function="gelu_pytorch_tanh", tie_word_embeddings=True), 1, {}),
    "offset_positions": (
        {"architectures": ["OPTForCausalLM"], "model_type": "opt", "vocab_size": 509,
         "hidden_size": 60, "num_attention_heads": 3, "num_hidden_layers": 3, "ffn_dim": 100,
         "max_position_embeddings": 256, "activation_function": "relu",
         "do_layer_norm_before": True, "word_embed_proj_dim": 60, "enable_bias": True,
         "layer_norm_elementwise_affine": True, "tie_word_embeddings": True, "bos_token_id": 1,
         "eos_token_id": 2, "pad_token_id": 0, "dtype": "float32"}, 1, {}),
    "temperature_of_positions": (
        config("Ministral3ForCausalLM", "ministral3", head_dim=24, sliding_window=None,
               rope_parameters=rope(
                   1000000.0, rope_type="yarn", factor=4.0, beta_fast=32.0, beta_slow=1.0,
                   mscale=1.0, mscale_all_dim=0.7, llama_4_scaling_beta=0.4,
                   original_max_position_embeddings=8)), 1, {}),
    "norms_after_rope": (
        config("HunYuanDenseV1ForCausalLM", "hunyuan_v1_dense", head_dim=24, pad_token_id=0,
               attention_bias=True, tie_word_embeddings=True,
               rope_parameters=rope(rope_type="dynamic", alpha=1000.0, factor=1.0)), 1, {}),
    "xielu": (
        config("ApertusForCausalLM", "apertus", head_dim=ABSENT, num_attention_heads=8,
               hidden_act="xielu", pad_token_id=0,
               rope_parameters=rope(500000.0, rope_type="llama3", factor=8.0, low_freq_factor=1.0,
                                    high_freq_factor=4.0, original_max_position_embeddings=32)),
        1, {}),
    "sub_norms": (
        config("BitNetForCausalLM", "bitnet", head_dim=ABSENT, hidden_act="relu2", hidden_size=60,
               num_attention_heads=6, num_key_value_heads=3), 1, {}),
    "clipped": (
        config("OlmoForCausalLM", "olmo", head_dim=ABSENT, rms_norm_eps=ABSENT, pad_token_id=0,
               attention_bias=True, clip_qkv=0.6), 1, {}),
    "scaled_post_norms": (
        config("HyperCLOVAXForCausalLM", "hyperclovax", head_dim=24, attention_multiplier=0.3,
               embedding_multiplier=5.0, residual_multiplier=0.6, logits_scaling=0.5,
               use_post_norm=True, pad_token_id=0), 1, {}),
    "squared_layer_norm": (
        config("Jais2ForCausalLM", "jais2", head_dim=20, hidden_act="relu2", rms_norm_eps=ABSENT,
               layer_norm_eps=1e-5, attention_bias=True, mlp_bias=True), 1, {}),
    "capped_pre_norms": (
        config("VaultGemmaForCausalLM", "vaultgemma", tie_word_embeddings=True, head_dim=24,
               hidden_act=ABSENT, hidden_activation="gelu_pytorch_tanh", query_pre_attn_scalar=20,
               attn_logit_softcapping=8.0, final_logit_softcapping=12.0, sliding_window=8), 1, {}),
    "chosen_windows": (
        config("MinistralForCausalLM", "ministral", head_dim=24, sliding_window=9,
               layer_types=["full_attention", "sliding_attention", "sliding_attention"]), 1, {}),
    "windows_after_first": (
        config("CwmForCausalLM", "cwm", head_dim=24, sliding_window=9, num_hidden_layers=5,
               layer_types=["full_attention", "sliding_attention", "sliding_attention",
                            "sliding_attention", "full_attention"],
               rope_parameters=rope(1000000.0, rope_type="llama3", factor=16.0,
                                    low_freq_factor=1.0, high_freq_factor=4.0,
                                    original_max_position_embeddings=32)), 1,
        {"layer_types": ABSENT}),
    "alibi": (
        {"architectures": ["BloomForCausalLM"], "model_type": "bloom", "vocab_size": 509,
         "hidden_size": 66, "n_head": 6, "n_layer": 3, "layer_norm_epsilon": 1e-5,
         "apply_residual_connection_post_layernorm": False, "tie_word_embeddings": False,
         "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0, "dtype": "float32"}, 1,
        {"n_layer": ABSENT, "n_head": ABSENT, "hidden_size": ABSENT, "n_embed": 66,
         "num_attention_heads": 6, "num_hidden_layers": 3, "seq_length": 128}),
    "alibi_clipped": (
        {"architectures": ["MptForCausalLM"], "model_type": "mpt", "vocab_size": 509,
         "d_model": 60, "n_heads": 5, "n_layers": 3, "max_seq_len": 128, "expansion_ratio": 4,
         "layer_norm_epsilon": 1e-5, "no_bias": True, "tie_word_embeddings": True,
         "attn_config": {"clip_qkv": 0.8, "softmax_scale": 0.4, "alibi": True,
                         "attn_type": "multihead_attention", "alibi_bias_max": 8},
         "bos_token_id": 1, "eos_token_id": 2, "dtype": "float32"}, 1, {}),
}
# Cases up to this one have the tensors of tests/support/tiny_checkpoint.h; the others list theirs.
LAST_WITHOUT_LIST = "f16"
# Cases up to this one have prompts by their number, the others by their name.
LAST_NUMBERED = "rotated_neighbours"
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
  if "full_attention" in scaling:
    old["rope_local_base_freq"] = scaling["sliding_attention"]["rope_theta"]
    scaling = scaling["full_attention"]
    del old["layer_types"]
  partial = scaling.pop("partial_rotary_factor", None)
  theta = scaling.pop("rope_theta")
  if c["model_type"] == "gpt_neox":
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
  if name.endswith("norm.weight") or (".ln_" in name and name.endswith(".weight")):
    return np.float32(1) + unit * np.float32(0.1)
  return unit * np.float32(amplitude)


TORCH_DTYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}


def fill(model, case, seed):
  if any(name.endswith("experts.gate_up_proj") for name, _ in model.named_parameters()):
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
  numbered = names[:names.index(LAST_NUMBERED) + 1]
  prompt = prompt_of(c, numbered.index(name) if name in numbered else sum(name.encode()))
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
