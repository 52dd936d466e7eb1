"""The checkpoints of make_goldens.py: configs in the key style of transformers 5."""

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


STREAM_TYPES = ["sliding_attention", "full_attention"] * 3


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
  c.update(changes)
  return {k: v for k, v in c.items() if v is not ABSENT}


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
QWEN3_5 = ("Qwen3_5ForCausalLM", "qwen3_5_text")

MAMBA2 = {"architectures": ["Mamba2ForCausalLM"], "model_type": "mamba2",
          "intermediate_size": ABSENT, "time_step_rank": ABSENT, "chunk_size": 16}
MAMBA_LAYERS = {"mamba_n_heads": 16, "mamba_n_groups": 4, "mamba_d_state": 6, "mamba_d_conv": 3,
                "mamba_expand": 2, "mamba_chunk_size": 16}

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
    "experts_all_head_norms": (
        config("OlmoeForCausalLM", "olmoe", head_dim=ABSENT, num_experts=7, num_experts_per_tok=3,
               intermediate_size=52, norm_topk_prob=False, pad_token_id=0), 1, {}),
    "shared_expert_gate": (
        config("Qwen2MoeForCausalLM", "qwen2_moe", head_dim=ABSENT, num_experts=6,
               num_experts_per_tok=2, moe_intermediate_size=36,
               shared_expert_intermediate_size=60, mlp_only_layers=[1], norm_topk_prob=False,
               qkv_bias=True), 1, {}),
    "experts_by_rows": (
        config("GraniteMoeForCausalLM", "granitemoe", head_dim=ABSENT, num_local_experts=5,
               num_experts_per_tok=2, intermediate_size=52, attention_multiplier=0.3,
               embedding_multiplier=5.0, residual_multiplier=0.6, logits_scaling=0.5), 2, {}),
    "experts_by_rows_shared": (
        config("GraniteMoeSharedForCausalLM", "granitemoeshared", head_dim=ABSENT,
               num_local_experts=5, num_experts_per_tok=2, intermediate_size=32,
               shared_intermediate_size=44, attention_multiplier=0.3, embedding_multiplier=5.0,
               residual_multiplier=0.6, logits_scaling=0.5), 2, {}),
    "corrected_routing": (
        config("Lfm2MoeForCausalLM", "lfm2_moe", tie_word_embeddings=True, head_dim=ABSENT,
               hidden_act=ABSENT, rms_norm_eps=ABSENT, norm_eps=1e-5, pad_token_id=0,
               num_hidden_layers=4, num_dense_layers=1, num_experts=6, num_experts_per_tok=2,
               moe_intermediate_size=44, use_expert_bias=True, norm_topk_prob=True,
               routed_scaling_factor=1.3, conv_bias=True, conv_L_cache=3,
               layer_types=["conv", "full_attention", "conv", "conv"],
               rope_parameters=rope(1000000.0)), 1, {}),
    "router_statistics": (
        config("Ernie4_5_MoeForCausalLM", "ernie4_5_moe", head_dim=ABSENT, use_bias=True,
               moe_num_experts=7, moe_k=3, moe_intermediate_size=36, moe_num_shared_experts=2,
               moe_layer_start_index=1, moe_layer_end_index=2, moe_layer_interval=1,
               rope_parameters=rope(500000.0)), 2, {}),
    "router_groups": (
        config("Glm4MoeForCausalLM", "glm4_moe", head_dim=20, attention_bias=True,
               use_qk_norm=True, n_routed_experts=12, num_experts_per_tok=3, n_group=4,
               topk_group=2, moe_intermediate_size=28, n_shared_experts=1,
               first_k_dense_replace=1, norm_topk_prob=True, routed_scaling_factor=1.7,
               rope_parameters=rope(partial_rotary_factor=0.5)), 2, {}),
    "sparse_mixer": (
        config("PhimoeForCausalLM", "phimoe", head_dim=ABSENT, num_local_experts=5,
               num_experts_per_tok=2, intermediate_size=52, router_jitter_noise=0.2,
               attention_bias=True, lm_head_bias=True, sliding_window=9,
               rope_parameters=rope(rope_type="longrope", original_max_position_embeddings=20,
                                    short_mscale=1.2, long_mscale=1.2,
                                    short_factor=[1.0 + 0.1 * i for i in range(8)],
                                    long_factor=[1.0 + 0.6 * i for i in range(8)])), 2, {}),
    "per_layer_embeddings": (
        config("Gemma4ForCausalLM", "gemma4_text", tie_word_embeddings=True, hidden_act=ABSENT,
               hidden_activation="gelu_pytorch_tanh", head_dim=16, global_head_dim=24,
               num_hidden_layers=6, num_kv_shared_layers=2, use_double_wide_mlp=True,
               intermediate_size=84, sliding_window=8, final_logit_softcapping=12.0,
               hidden_size_per_layer_input=10, vocab_size_per_layer_input=509, pad_token_id=0,
               layer_types=["sliding_attention", "full_attention", "sliding_attention",
                            "full_attention", "sliding_attention", "full_attention"],
               rope_parameters={
                   "full_attention": rope(1000000.0, rope_type="proportional",
                                          partial_rotary_factor=0.25),
                   "sliding_attention": rope(10000.0)}), 15, {}),
    "keys_are_values": (
        config("Gemma4ForCausalLM", "gemma4_text", tie_word_embeddings=False, hidden_act=ABSENT,
               hidden_activation="gelu_pytorch_tanh", head_dim=16, global_head_dim=28,
               num_global_key_value_heads=1, attention_k_eq_v=True, num_hidden_layers=3,
               intermediate_size=84, sliding_window=8, final_logit_softcapping=None,
               hidden_size_per_layer_input=0, vocab_size_per_layer_input=509, pad_token_id=0,
               layer_types=["sliding_attention", "full_attention", "full_attention"],
               rope_parameters={
                   "full_attention": rope(1000000.0, rope_type="proportional",
                                          partial_rotary_factor=0.5),
                   "sliding_attention": rope(10000.0)}), 1, {}),
    "residual_streams": (
        config("Gemma3nForCausalLM", "gemma3n_text", tie_word_embeddings=True, hidden_act=ABSENT,
               hidden_activation="gelu_pytorch_tanh", head_dim=16, num_hidden_layers=6,
               num_kv_shared_layers=2, intermediate_size=[84, 84, 84, 100, 84, 100],
               activation_sparsity_pattern=[0.8, 0.8, 0.3, 0.5, 0.0, 0.0], laurel_rank=12,
               altup_num_inputs=4, sliding_window=8, final_logit_softcapping=12.0,
               hidden_size_per_layer_input=10, vocab_size_per_layer_input=520, pad_token_id=0,
               layer_types=STREAM_TYPES,
               rope_parameters={"full_attention": rope(1000000.0),
                                "sliding_attention": rope(10000.0)}), 1,
        {"layer_types": STREAM_TYPES}),
    "residual_streams_odd": (
        config("Gemma3nForCausalLM", "gemma3n_text", tie_word_embeddings=False, hidden_act=ABSENT,
               hidden_activation="gelu", hidden_size=52, head_dim=14, num_key_value_heads=1,
               num_kv_shared_layers=1, intermediate_size=90, attention_bias=True,
               activation_sparsity_pattern=[0.0, 0.5, 0.7], laurel_rank=5, altup_num_inputs=3,
               altup_active_idx=1, altup_correct_scale=False, sliding_window=8,
               final_logit_softcapping=30.0, hidden_size_per_layer_input=6,
               vocab_size_per_layer_input=509, pad_token_id=0, layer_types=STREAM_TYPES[:3],
               rope_parameters={
                   "full_attention": rope(1000000.0, rope_type="linear", factor=4.0),
                   "sliding_attention": rope(10000.0)}), 1,
        {"layer_types": STREAM_TYPES[:3]}),
    "latent_attention": (
        config("DeepseekV3ForCausalLM", "deepseek_v3", head_dim=ABSENT, num_key_value_heads=4,
               q_lora_rank=20, kv_lora_rank=28, qk_rope_head_dim=12, qk_nope_head_dim=10,
               v_head_dim=18, n_routed_experts=12, num_experts_per_tok=3, n_group=4, topk_group=2,
               moe_intermediate_size=28, n_shared_experts=2, first_k_dense_replace=1,
               norm_topk_prob=True, routed_scaling_factor=1.7, rope_interleave=True,
               attention_bias=True,
               rope_parameters=rope(rope_type="yarn", factor=4.0, mscale=1.0, mscale_all_dim=0.7,
                                    original_max_position_embeddings=64)), 1, {}),
    "latent_attention_greedy": (
        config("DeepseekV2ForCausalLM", "deepseek_v2", head_dim=ABSENT, num_key_value_heads=4,
               q_lora_rank=None, kv_lora_rank=24, qk_rope_head_dim=8, qk_nope_head_dim=12,
               v_head_dim=16, n_routed_experts=6, num_experts_per_tok=2, topk_method="greedy",
               n_group=1, topk_group=1, moe_intermediate_size=28, n_shared_experts=1,
               first_k_dense_replace=1, norm_topk_prob=False, routed_scaling_factor=1.0), 4, {}),
    "latent_attention_halves": (
        config("YoutuForCausalLM", "youtu", head_dim=ABSENT, num_key_value_heads=4,
               tie_word_embeddings=True, q_lora_rank=36, kv_lora_rank=20, qk_rope_head_dim=8,
               qk_nope_head_dim=16, v_head_dim=12, rope_interleave=False), 5, {}),
    "latent_attention_layer_types": (
        config("Glm4MoeLiteForCausalLM", "glm4_moe_lite", head_dim=ABSENT, num_key_value_heads=4,
               q_lora_rank=20, kv_lora_rank=16, qk_rope_head_dim=8, qk_nope_head_dim=12,
               v_head_dim=24, n_routed_experts=6, num_experts_per_tok=2, n_group=1, topk_group=1,
               moe_intermediate_size=28, n_shared_experts=1, norm_topk_prob=True,
               routed_scaling_factor=1.8, rope_interleave=True,
               mlp_layer_types=["dense", "sparse", "sparse"]), 3, {}),
    "delta_rule": (
        config(*QWEN3_5, num_hidden_layers=4, head_dim=24, attention_bias=True,
               tie_word_embeddings=True, linear_num_key_heads=2, linear_num_value_heads=4,
               linear_key_head_dim=8, linear_value_head_dim=12,
               layer_types=["linear_attention", "linear_attention", "full_attention",
                            "linear_attention"],
               rope_parameters=rope(1000000.0, partial_rotary_factor=0.25)), 1, {}),
    # No dimension is a multiple of a kernel's tile or vector size.
    "delta_rule_odd": (
        config(*QWEN3_5, hidden_size=52, head_dim=80, num_attention_heads=3, num_key_value_heads=1,
               intermediate_size=100, linear_num_key_heads=3, linear_num_value_heads=3,
               linear_key_head_dim=80, linear_value_head_dim=43, linear_conv_kernel_dim=2,
               layer_types=["full_attention", "linear_attention", "linear_attention"],
               rope_parameters=rope(10000.0, partial_rotary_factor=0.1)), 2, {}),
    "linear_attention": (
        scan_config(**MAMBA2, vocab_size=127, hidden_size=24, expand=4, num_heads=12, head_dim=8,
                    n_groups=3, state_size=5, conv_kernel=3, use_bias=True), 15, {}),
    "linear_attention_limits": (
        scan_config(**MAMBA2, vocab_size=127, hidden_size=20, expand=6, num_heads=3, head_dim=40,
                    n_groups=1, state_size=7, conv_kernel=2, use_conv_bias=False,
                    time_step_limit=[0.4, 0.8], tie_word_embeddings=False), 14, {}),
    "hybrid_types": (
        config("GraniteMoeHybridForCausalLM", "granitemoehybrid", **MAMBA_LAYERS,
               num_hidden_layers=4, head_dim=ABSENT, pad_token_id=0, num_local_experts=0,
               num_experts_per_tok=0, shared_intermediate_size=100, mamba_d_head=8,
               layer_types=["mamba", "attention", "mamba", "mamba"],
               position_embedding_type="rope", attention_multiplier=0.3, embedding_multiplier=5.0,
               residual_multiplier=0.6, logits_scaling=0.5), 1, {}),
    "hybrid_indices": (
        config("BambaForCausalLM", "bamba", **MAMBA_LAYERS, head_dim=ABSENT, pad_token_id=0,
               attn_layer_indices=[1], attention_bias=True, mlp_bias=True, mamba_proj_bias=True),
        4, {}),
    "parallel_heads": (
        config("FalconH1ForCausalLM", "falcon_h1",
               **{**MAMBA_LAYERS, "mamba_n_heads": 6, "mamba_n_groups": 2}, pad_token_id=0,
               mamba_d_ssm=48, mamba_d_head=8,
               mamba_rms_norm=True, mamba_norm_before_gate=False, attention_bias=True,
               mlp_bias=True, mamba_proj_bias=True, projectors_bias=True, lm_head_multiplier=0.7,
               embedding_multiplier=3.0, mlp_multipliers=[0.8, 0.6], key_multiplier=0.9,
               attention_out_multiplier=0.7, attention_in_multiplier=1.2,
               ssm_multipliers=[0.9, 0.8, 1.3, 0.6, 1.1], ssm_in_multiplier=1.25,
               ssm_out_multiplier=0.7), 6, {}),
    "single_blocks": (
        config("NemotronHForCausalLM", "nemotron_h", vocab_size=127, hidden_size=24,
               hidden_act=ABSENT, rms_norm_eps=ABSENT, rope_parameters=ABSENT,
               num_hidden_layers=5, pad_token_id=0, layer_norm_epsilon=1e-5,
               mlp_hidden_act="relu2", mlp_bias=True, use_bias=True,
               layers_block_type=["mamba", "mlp", "attention", "mlp", "mamba"],
               mamba_num_heads=6, mamba_head_dim=12, n_groups=2, ssm_state_size=9, conv_kernel=4,
               time_step_min=0.3), 53, {}),
    "single_blocks_experts": (
        config("NemotronHForCausalLM", "nemotron_h", vocab_size=127, hidden_size=36,
               hidden_act=ABSENT, rms_norm_eps=ABSENT, rope_parameters=ABSENT,
               num_hidden_layers=5, pad_token_id=0, layer_norm_epsilon=1e-5,
               mlp_hidden_act="relu2", mlp_bias=False, use_bias=False,
               layers_block_type=["mamba", "moe", "attention", "moe", "mlp"],
               n_routed_experts=8, num_experts_per_tok=3, n_group=2, topk_group=1,
               moe_intermediate_size=28, moe_shared_expert_intermediate_size=52,
               norm_topk_prob=True, routed_scaling_factor=1.7,
               mamba_num_heads=6, mamba_head_dim=12, n_groups=2, ssm_state_size=9, conv_kernel=4,
               time_step_min=0.3), 36, {}),
    "delta_rule_fused": (
        config("Qwen3NextForCausalLM", "qwen3_next", num_hidden_layers=4, head_dim=20,
               num_experts=0, linear_num_key_heads=2, linear_num_value_heads=6,
               linear_key_head_dim=10, linear_value_head_dim=7, linear_conv_kernel_dim=3,
               rope_parameters=rope(10000.0, partial_rotary_factor=0.5)), 1, {}),
    "delta_rule_fused_experts": (
        config("Qwen3NextForCausalLM", "qwen3_next", num_hidden_layers=4, head_dim=20,
               num_experts=6, num_experts_per_tok=3, moe_intermediate_size=36,
               shared_expert_intermediate_size=52, norm_topk_prob=True, mlp_only_layers=[1],
               decoder_sparse_step=1, linear_num_key_heads=2, linear_num_value_heads=6,
               linear_key_head_dim=10, linear_value_head_dim=7, linear_conv_kernel_dim=3,
               rope_parameters=rope(10000.0, partial_rotary_factor=0.5)), 1, {}),
    "delta_rule_experts": (
        config("Qwen3_5MoeForCausalLM", "qwen3_5_moe_text", intermediate_size=ABSENT,
               num_hidden_layers=3, head_dim=24, num_experts=5, num_experts_per_tok=2,
               moe_intermediate_size=28, shared_expert_intermediate_size=44,
               linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=16,
               linear_value_head_dim=24, linear_conv_kernel_dim=3,
               layer_types=["linear_attention", "full_attention", "linear_attention"],
               rope_parameters=rope(100000.0, partial_rotary_factor=0.25)), 8, {}),
    "hybrid_experts": (
        config("GraniteMoeHybridForCausalLM", "granitemoehybrid", head_dim=ABSENT,
               num_local_experts=5, num_experts_per_tok=3, intermediate_size=28,
               shared_intermediate_size=76, num_hidden_layers=4, mamba_n_heads=6,
               mamba_d_head=18, mamba_n_groups=1, mamba_d_state=10, mamba_d_conv=4,
               hidden_size=54, num_attention_heads=6, num_key_value_heads=3,
               mamba_expand=2, embedding_multiplier=3.0, attention_multiplier=0.2,
               residual_multiplier=0.7, logits_scaling=2.0, position_embedding_type="nope",
               layer_types=["mamba", "attention", "mamba", "mamba"]), 3, {}),
    "norms_after_rope_experts": (
        config("HunYuanMoEV1ForCausalLM", "hunyuan_v1_moe", head_dim=20, pad_token_id=0,
               attention_bias=True, num_experts=5, moe_topk=2, intermediate_size=44,
               rope_parameters=rope(rope_type="dynamic", alpha=1000.0, factor=1.0)), 3, {}),
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
               attention_out_bias=False, mlp_bias=False, pad_token_id=0), 3, {}),
    "relu_squared": (
        config("ArceeForCausalLM", "arcee", hidden_act="relu2", head_dim=20, mlp_bias=True,
               rope_parameters=rope(rope_type="yarn", factor=8.0, beta_fast=32.0, beta_slow=1.0,
                                    mscale=1.0, original_max_position_embeddings=32)), 2, {}),
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
               rope_parameters=rope(partial_rotary_factor=0.5)), 2, {}),
    "one_norm": (
        layer_norm_config("CohereForCausalLM", "cohere", "layer_norm_eps", logit_scale=0.25,
                          tie_word_embeddings=True, pad_token_id=0,
                          rope_parameters=rope(500000.0)), 172, {}),
    "one_norm_windows": (
        layer_norm_config("Cohere2ForCausalLM", "cohere2", "layer_norm_eps", logit_scale=0.25,
                          tie_word_embeddings=True, pad_token_id=0, sliding_window=9,
                          num_hidden_layers=4, attention_bias=True,
                          layer_types=["sliding_attention", "sliding_attention",
                                       "sliding_attention", "full_attention"],
                          rope_parameters=rope(50000.0)), 108,
        {"layer_types": ABSENT, "sliding_window_pattern": 4}),
    "head_bias": (
        layer_norm_config("PhiForCausalLM", "phi", "layer_norm_eps", hidden_act="gelu_new",
                          num_key_value_heads=4, hidden_size=80, qk_layernorm=False,
                          rope_parameters=rope(partial_rotary_factor=0.4)), 2, {}),
    "gated_layer_norm": (
        layer_norm_config("StableLmForCausalLM", "stablelm", "layer_norm_eps", use_qkv_bias=True,
                          use_parallel_residual=False, qk_layernorm=False,
                          rope_parameters=rope(partial_rotary_factor=0.25)), 1, {}),
    "gated_one_norm": (
        layer_norm_config("StableLmForCausalLM", "stablelm", "layer_norm_eps", use_qkv_bias=False,
                          use_parallel_residual=True, qk_layernorm=False,
                          rope_parameters=rope(partial_rotary_factor=0.25)), 2, {}),
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
               alibi=False, new_decoder_architecture=False, tie_word_embeddings=True), 6, {}),
    "grouped_heads": (
        config("FalconForCausalLM", "falcon", head_dim=ABSENT, rms_norm_eps=ABSENT,
               hidden_act=ABSENT, num_key_value_heads=ABSENT, intermediate_size=ABSENT,
               layer_norm_epsilon=1e-5, activation="gelu", num_attention_heads=8, num_kv_heads=2,
               parallel_attn=True, bias=True, alibi=False, new_decoder_architecture=True,
               tie_word_embeddings=False), 4, {}),
    "sequential_heads": (
        config("FalconForCausalLM", "falcon", head_dim=ABSENT, rms_norm_eps=ABSENT,
               hidden_act=ABSENT, num_key_value_heads=ABSENT, intermediate_size=ABSENT,
               layer_norm_epsilon=1e-5, activation="gelu", num_attention_heads=4,
               multi_query=False, parallel_attn=False, bias=True, alibi=False,
               new_decoder_architecture=False, tie_word_embeddings=True), 2, {}),
    "rotary_dim": (
        gpt_config("GPTJForCausalLM", "gptj", rotary_dim=6, tie_word_embeddings=False), 1, {}),
    "sharded_heads": (
        gpt_config("CodeGenForCausalLM", "codegen", rotary_dim=4, n_head=8, n_ctx=256,
                   n_inner=100, tie_word_embeddings=False), 3, {}),
    "multi_query_positions": (
        gpt_config("GPTBigCodeForCausalLM", "gpt_bigcode", multi_query=True,
                   activation_function="gelu_pytorch_tanh", tie_word_embeddings=True), 5, {}),
    "offset_positions": (
        {"architectures": ["OPTForCausalLM"], "model_type": "opt", "vocab_size": 509,
         "hidden_size": 60, "num_attention_heads": 3, "num_hidden_layers": 3, "ffn_dim": 100,
         "max_position_embeddings": 256, "activation_function": "relu",
         "do_layer_norm_before": True, "word_embed_proj_dim": 60, "enable_bias": True,
         "layer_norm_elementwise_affine": True, "tie_word_embeddings": True, "bos_token_id": 1,
         "eos_token_id": 2, "pad_token_id": 0, "dtype": "float32"}, 9, {}),
    "temperature_of_positions": (
        config("Ministral3ForCausalLM", "ministral3", head_dim=24, sliding_window=None,
               rope_parameters=rope(
                   1000000.0, rope_type="yarn", factor=4.0, beta_fast=32.0, beta_slow=1.0,
                   mscale=1.0, mscale_all_dim=0.7, llama_4_scaling_beta=0.4,
                   original_max_position_embeddings=8)), 6, {}),
    "norms_after_rope": (
        config("HunYuanDenseV1ForCausalLM", "hunyuan_v1_dense", head_dim=24, pad_token_id=0,
               attention_bias=True, tie_word_embeddings=True,
               rope_parameters=rope(rope_type="dynamic", alpha=1000.0, factor=1.0)), 1, {}),
    "xielu": (
        config("ApertusForCausalLM", "apertus", head_dim=ABSENT, num_attention_heads=8,
               hidden_act="xielu", pad_token_id=0,
               rope_parameters=rope(500000.0, rope_type="llama3", factor=8.0, low_freq_factor=1.0,
                                    high_freq_factor=4.0, original_max_position_embeddings=32)),
        6, {}),
    "sub_norms": (
        config("BitNetForCausalLM", "bitnet", head_dim=ABSENT, hidden_act="relu2", hidden_size=60,
               num_attention_heads=6, num_key_value_heads=3), 3, {}),
    "clipped": (
        config("OlmoForCausalLM", "olmo", head_dim=ABSENT, rms_norm_eps=ABSENT, pad_token_id=0,
               attention_bias=True, clip_qkv=0.6), 6, {}),
    "scaled_post_norms": (
        config("HyperCLOVAXForCausalLM", "hyperclovax", head_dim=24, attention_multiplier=0.3,
               embedding_multiplier=5.0, residual_multiplier=0.6, logits_scaling=0.5,
               use_post_norm=True, pad_token_id=0), 13, {}),
    "squared_layer_norm": (
        config("Jais2ForCausalLM", "jais2", head_dim=20, hidden_act="relu2", rms_norm_eps=ABSENT,
               layer_norm_eps=1e-5, attention_bias=True, mlp_bias=True), 2, {}),
    "capped_pre_norms": (
        config("VaultGemmaForCausalLM", "vaultgemma", tie_word_embeddings=True, head_dim=24,
               hidden_act=ABSENT, hidden_activation="gelu_pytorch_tanh", query_pre_attn_scalar=20,
               attn_logit_softcapping=8.0, final_logit_softcapping=12.0, sliding_window=8), 1, {}),
    "chosen_windows": (
        config("MinistralForCausalLM", "ministral", head_dim=24, sliding_window=9,
               layer_types=["full_attention", "sliding_attention", "sliding_attention"]), 3, {}),
    "windows_after_first": (
        config("CwmForCausalLM", "cwm", head_dim=24, sliding_window=9, num_hidden_layers=5,
               layer_types=["full_attention", "sliding_attention", "sliding_attention",
                            "sliding_attention", "full_attention"],
               rope_parameters=rope(1000000.0, rope_type="llama3", factor=16.0,
                                    low_freq_factor=1.0, high_freq_factor=4.0,
                                    original_max_position_embeddings=32)), 3,
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
         "bos_token_id": 1, "eos_token_id": 2, "dtype": "float32"}, 37, {}),
}
