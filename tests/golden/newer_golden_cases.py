"""More checkpoints of make_goldens.py: families that came after those of golden_cases.py."""

from golden_cases import ABSENT, config, layer_norm_config, rope, scan_config

NEWER_CASES = {
    # Layers behind the last predict further tokens; transformers leaves them out.
    "further_layers": (
        config("Glm4MoeForCausalLM", "glm4_moe", head_dim=20, num_hidden_layers=2,
               num_nextn_predict_layers=2, n_routed_experts=6, num_experts_per_tok=2, n_group=1,
               topk_group=1, moe_intermediate_size=28, n_shared_experts=1,
               first_k_dense_replace=1, norm_topk_prob=True, routed_scaling_factor=1.7,
               rope_parameters=rope(partial_rotary_factor=0.5)), 1, {}),
    "latent_temperature": (
        config("Mistral4ForCausalLM", "mistral4", head_dim=ABSENT, num_key_value_heads=4,
               q_lora_rank=20, kv_lora_rank=28, qk_rope_head_dim=12, qk_nope_head_dim=10,
               v_head_dim=18, n_routed_experts=12, num_experts_per_tok=3, n_group=4, topk_group=2,
               moe_intermediate_size=28, n_shared_experts=1, first_k_dense_replace=1,
               norm_topk_prob=True, routed_scaling_factor=1.7, attention_bias=True, pad_token_id=0,
               rope_parameters=rope(rope_type="yarn", factor=4.0, mscale=1.0, mscale_all_dim=0.7,
                                    llama_4_scaling_beta=0.4,
                                    original_max_position_embeddings=8)), 4, {}),
    "plain_norms": (
        config("NanoChatForCausalLM", "nanochat", hidden_size=60, head_dim=ABSENT,
               hidden_act="relu2", num_attention_heads=6, num_key_value_heads=3,
               attention_bias=True, final_logit_softcapping=12.0), 5, {}),
    "windowed_layers_rotate_experts": (
        config("ExaoneMoeForCausalLM", "exaone_moe", head_dim=24, num_attention_heads=5,
               num_key_value_heads=1, num_experts=6, num_experts_per_tok=2, n_group=3,
               topk_group=2, moe_intermediate_size=28, num_shared_experts=2,
               first_k_dense_replace=1, norm_topk_prob=True, routed_scaling_factor=1.7,
               sliding_window=9, sliding_window_pattern=3, pad_token_id=0,
               layer_types=["sliding_attention", "sliding_attention", "full_attention"]), 2, {}),
    "later_windows_experts": (
        config("Dots1ForCausalLM", "dots1", head_dim=20, n_routed_experts=6,
               num_experts_per_tok=2, moe_intermediate_size=28, n_shared_experts=2,
               first_k_dense_replace=1, norm_topk_prob=True, routed_scaling_factor=1.7,
               sliding_window=9, max_window_layers=1, attention_bias=True), 3, {}),
    "corrected_experts_everywhere": (
        config("SolarOpenForCausalLM", "solar_open", head_dim=20, intermediate_size=ABSENT,
               n_routed_experts=6, num_experts_per_tok=2, moe_intermediate_size=28,
               n_shared_experts=1, norm_topk_prob=True, routed_scaling_factor=1.7,
               attention_bias=True), 4, {}),
    "corrected_experts_biases": (
        config("HYV3ForCausalLM", "hy_v3", head_dim=20, num_experts=6, num_experts_per_tok=2,
               moe_intermediate_size=28, num_shared_experts=2, router_scaling_factor=1.7,
               attention_bias=True, mlp_bias=True,
               mlp_layer_types=["dense", "sparse", "sparse"]), 4, {}),
    "ropes_by_type_experts": (
        config("MellumForCausalLM", "mellum", head_dim=20, num_experts=6, num_experts_per_tok=2,
               moe_intermediate_size=28, norm_topk_prob=True, sliding_window=9,
               layer_types=["sliding_attention", "full_attention", "sliding_attention"],
               mlp_layer_types=["sparse", "dense", "sparse"],
               rope_parameters={
                   "full_attention": rope(500000.0, rope_type="yarn", factor=4.0,
                                          original_max_position_embeddings=64),
                   "sliding_attention": rope(10000.0)}), 5, {}),
    "experts_parallel": (
        config("Cohere2MoeForCausalLM", "cohere2_moe", rms_norm_eps=ABSENT, layer_norm_eps=1e-5,
               num_hidden_layers=5, intermediate_size=44, prefix_dense_intermediate_size=76,
               num_experts=6, num_experts_per_tok=2, num_shared_experts=2, logit_scale=0.5,
               sliding_window=9, attention_bias=True, tie_word_embeddings=True, pad_token_id=0,
               layer_types=["full_attention", "sliding_attention", "full_attention",
                            "sliding_attention", "full_attention"],
               mlp_layer_types=["dense", "sparse", "sparse", "dense", "sparse"]), 4, {}),
    # No dimension is a multiple of a kernel's tile or vector size.
    "experts_parallel_odd": (
        config("Cohere2MoeForCausalLM", "cohere2_moe", hidden_size=52, rms_norm_eps=1e-3,
               head_dim=18, num_attention_heads=3, num_key_value_heads=1, num_hidden_layers=6,
               intermediate_size=28, num_experts=5, num_experts_per_tok=3, num_shared_experts=1,
               expert_selection_fn="sigmoid", shared_expert_combination_strategy="sum",
               norm_topk_prob=False, logit_scale=1.5, sliding_window=8, sliding_window_pattern=3,
               prefix_dense_sliding_window_pattern=2, first_k_dense_replace=2, pad_token_id=0),
        2, {}),
    "head_gates_experts": (
        config("LagunaForCausalLM", "laguna", num_hidden_layers=4, intermediate_size=76,
               num_attention_heads_per_layer=[4, 6, 2, 4], num_experts=6, num_experts_per_tok=2,
               moe_intermediate_size=28, shared_expert_intermediate_size=36,
               moe_routed_scaling_factor=1.7, sliding_window=9, pad_token_id=0,
               layer_types=["full_attention", "sliding_attention"] * 2,
               rope_parameters={
                   "full_attention": rope(500000.0, rope_type="yarn", factor=4.0,
                                          partial_rotary_factor=0.5,
                                          original_max_position_embeddings=64),
                   "sliding_attention": rope(10000.0)}), 2, {}),
    # No dimension is a multiple of a kernel's tile or vector size.
    "head_gates_odd": (
        config("LagunaForCausalLM", "laguna", hidden_size=52, head_dim=18, num_attention_heads=3,
               num_key_value_heads=3, intermediate_size=44, attention_bias=True,
               num_attention_heads_per_layer=[3, 9, 6], num_experts=5, num_experts_per_tok=3,
               moe_intermediate_size=20, shared_expert_intermediate_size=28,
               mlp_layer_types=["sparse", "dense", "sparse"], tie_word_embeddings=True,
               rope_parameters={"full_attention": rope(20000.0, partial_rotary_factor=0.7)}),
        2, {}),
    "all_head_norms_experts": (
        config("MiniMaxM2ForCausalLM", "minimax_m2", head_dim=18, num_attention_heads=6,
               num_key_value_heads=3, intermediate_size=28, num_local_experts=6,
               num_experts_per_tok=3, rope_parameters=rope(50000.0, partial_rotary_factor=0.7)),
        10, {}),
    "experts_by_columns": (
        config("AriaTextForCausalLM", "aria_text", hidden_size=60, head_dim=ABSENT,
               num_attention_heads=6, num_key_value_heads=3, intermediate_size=28,
               moe_num_experts=5, moe_topk=2, moe_num_shared_experts=3, attention_bias=True,
               mlp_bias=True, pad_token_id=0), 2, {}),
    "larger_base": (
        config("Emu3ForCausalLM", "emu3_text_model", hidden_size=60, head_dim=ABSENT,
               num_attention_heads=6, num_key_value_heads=3, intermediate_size=76,
               pad_token_id=0, rope_parameters=rope(1000000.0)), 2, {}),
    "scaled_embedding_positions": (
        layer_norm_config("BioGptForCausalLM", "biogpt", "layer_norm_eps", hidden_size=60,
                          num_attention_heads=5, num_key_value_heads=ABSENT,
                          rope_parameters=ABSENT, intermediate_size=76, hidden_act="gelu",
                          scale_embedding=True, pad_token_id=0, tie_word_embeddings=False), 1, {}),
    "last_layer_bias": (
        layer_norm_config("GPTNeoXJapaneseForCausalLM", "gpt_neox_japanese", "layer_norm_eps",
                          hidden_size=60, num_attention_heads=6, num_key_value_heads=ABSENT,
                          intermediate_size=ABSENT, hidden_act="gelu", tie_word_embeddings=True,
                          rope_parameters=rope(20000.0, partial_rotary_factor=1.0)), 3, {}),
    "post_norms_experts": (
        config("FlexOlmoForCausalLM", "flex_olmo", head_dim=ABSENT, num_experts=6,
               num_experts_per_tok=3, intermediate_size=44, norm_topk_prob=False, pad_token_id=0),
        2, {}),
    "gated_attention_experts": (
        config("AfmoeForCausalLM", "afmoe", head_dim=20, num_attention_heads=6, num_dense_layers=1,
               num_experts=6, num_experts_per_tok=2, moe_intermediate_size=28,
               num_shared_experts=2, route_scale=1.7, mup_enabled=True, attention_bias=True,
               global_attn_every_n_layers=2, sliding_window=9,
               layer_types=["sliding_attention", "full_attention", "sliding_attention"]), 2, {}),
    # No dimension is a multiple of a kernel's tile or vector size.
    "experts_beside": (
        config("Gemma4ForCausalLM", "gemma4_text", tie_word_embeddings=False, hidden_act=ABSENT,
               hidden_activation="gelu_pytorch_tanh", hidden_size=76, head_dim=18,
               num_attention_heads=7, num_key_value_heads=1, global_head_dim=26,
               num_global_key_value_heads=1, attention_k_eq_v=True, num_hidden_layers=3,
               intermediate_size=84, sliding_window=8, final_logit_softcapping=12.0,
               hidden_size_per_layer_input=0, vocab_size_per_layer_input=509, pad_token_id=0,
               enable_moe_block=True, num_experts=6, top_k_experts=3, moe_intermediate_size=28,
               layer_types=["sliding_attention", "full_attention", "full_attention"],
               rope_parameters={
                   "full_attention": rope(1000000.0, rope_type="proportional",
                                          partial_rotary_factor=0.5),
                   "sliding_attention": rope(10000.0)}), 1, {}),
    "experts_beside_wide": (
        config("Gemma4ForCausalLM", "gemma4_text", tie_word_embeddings=False, hidden_act=ABSENT,
               hidden_activation="gelu_pytorch_tanh", head_dim=16, global_head_dim=24,
               num_hidden_layers=4, num_kv_shared_layers=2, use_double_wide_mlp=True,
               intermediate_size=52, sliding_window=8, final_logit_softcapping=None,
               hidden_size_per_layer_input=10, vocab_size_per_layer_input=509, pad_token_id=0,
               enable_moe_block=True, num_experts=5, top_k_experts=2, moe_intermediate_size=28,
               layer_types=["sliding_attention", "full_attention"] * 2,
               rope_parameters={
                   "full_attention": rope(1000000.0, rope_type="proportional",
                                          partial_rotary_factor=0.25),
                   "sliding_attention": rope(10000.0)}), 2, {}),
    "delta_rule_split": (
        config("OlmoHybridForCausalLM", "olmo_hybrid", head_dim=ABSENT, num_hidden_layers=4,
               rms_norm_eps=1e-3, pad_token_id=0, linear_num_key_heads=2,
               linear_num_value_heads=4, linear_key_head_dim=8, linear_value_head_dim=12,
               layer_types=["linear_attention", "linear_attention", "full_attention",
                            "linear_attention"]), 1, {}),
    # No dimension is a multiple of a kernel's tile or vector size.
    "delta_rule_split_odd": (
        config("OlmoHybridForCausalLM", "olmo_hybrid", hidden_size=60, head_dim=ABSENT,
               num_attention_heads=3, num_key_value_heads=3, num_hidden_layers=5, pad_token_id=0,
               intermediate_size=76, attention_bias=True, linear_conv_kernel_dim=3,
               linear_allow_neg_eigval=False, tie_word_embeddings=True,
               rope_parameters={"rope_type": "default", "rope_theta": None}), 5, {}),
    # The context ends where attention would become sparse.
    "latent_indexed": (
        config("DeepseekV32ForCausalLM", "deepseek_v32", head_dim=ABSENT, num_key_value_heads=4,
               q_lora_rank=20, kv_lora_rank=16, qk_rope_head_dim=8, qk_nope_head_dim=12,
               v_head_dim=24, n_routed_experts=8, num_experts=8, num_experts_per_tok=2, n_group=4,
               topk_group=2, moe_intermediate_size=28, n_shared_experts=1, norm_topk_prob=True,
               routed_scaling_factor=1.8, first_k_dense_replace=1, index_topk=64,
               index_head_dim=16, index_n_heads=2, attention_bias=True), 6, {}),
    "latent_indexed_odd": (
        config("GlmMoeDsaForCausalLM", "glm_moe_dsa", hidden_size=52, head_dim=ABSENT,
               num_attention_heads=3, num_key_value_heads=3, q_lora_rank=19, kv_lora_rank=27,
               qk_rope_head_dim=6, qk_nope_head_dim=11, v_head_dim=13, n_routed_experts=5,
               num_experts_per_tok=3, n_group=1, topk_group=1, moe_intermediate_size=20,
               n_shared_experts=2, norm_topk_prob=False, routed_scaling_factor=0.7,
               mlp_layer_types=["sparse", "dense", "sparse"], index_topk=80, index_head_dim=12,
               index_n_heads=3, indexer_types=["full", "shared", "full"],
               rope_parameters=rope(rope_type="yarn", factor=4.0, mscale_all_dim=0.7,
                                    original_max_position_embeddings=32)), 1, {}),
    "scan_plain_norms": (
        scan_config(architectures=["FalconMambaForCausalLM"], model_type="falcon_mamba",
                    vocab_size=127, hidden_size=44, expand=3, intermediate_size=ABSENT,
                    state_size=5, conv_kernel=3, time_step_rank=7, use_bias=True,
                    mixer_rms_eps=1e-3, tie_word_embeddings=False), 39, {}),
    "scan_layers": (
        config("JambaForCausalLM", "jamba", head_dim=ABSENT, rope_parameters=ABSENT,
               hidden_size=60, num_attention_heads=6, num_key_value_heads=3, intermediate_size=44,
               num_hidden_layers=4, num_experts=5, num_experts_per_tok=2, expert_layer_period=2,
               expert_layer_offset=1, attn_layer_period=3, attn_layer_offset=1, mamba_d_state=6,
               mamba_d_conv=3, mamba_expand=2, mamba_dt_rank="auto", mamba_proj_bias=True,
               rms_norm_eps=1e-4, pad_token_id=0, tie_word_embeddings=True), 3, {}),
    "global_heads": (
        config("Gemma4UnifiedForCausalLM", "gemma4_unified_text", hidden_act=ABSENT,
               hidden_activation="gelu_pytorch_tanh", head_dim=18, num_attention_heads=6,
               num_key_value_heads=3, global_head_dim=26, num_global_key_value_heads=2,
               attention_k_eq_v=True, num_hidden_layers=4, num_kv_shared_layers=1,
               use_double_wide_mlp=True, intermediate_size=76, sliding_window=8,
               final_logit_softcapping=12.0, pad_token_id=0,
               layer_types=["sliding_attention", "full_attention"] * 2,
               rope_parameters={
                   "full_attention": rope(1000000.0, rope_type="proportional",
                                          partial_rotary_factor=0.5),
                   "sliding_attention": rope(10000.0)}), 8, {}),
    "dense_head": (
        {"architectures": ["ModernBertDecoderForCausalLM"], "model_type": "modernbert-decoder",
         "vocab_size": 509, "hidden_size": 60, "intermediate_size": 76, "num_hidden_layers": 4,
         "num_attention_heads": 6, "hidden_activation": "gelu", "max_position_embeddings": 256,
         "norm_eps": 1e-5, "norm_bias": False, "attention_bias": True, "mlp_bias": True,
         "decoder_bias": True, "classifier_bias": True, "classifier_activation": "gelu",
         "local_attention": 16, "global_attn_every_n_layers": 3, "tie_word_embeddings": True,
         "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0, "dtype": "float32",
         "layer_types": ["full_attention", "sliding_attention", "sliding_attention",
                         "full_attention"],
         "rope_parameters": {"full_attention": rope(160000.0),
                             "sliding_attention": rope(10000.0)}}, 9, {}),
    "latent_depth_factors": (
        config("MiniCPM3ForCausalLM", "minicpm3", head_dim=ABSENT, num_key_value_heads=4,
               q_lora_rank=20, kv_lora_rank=28, qk_rope_head_dim=12, qk_nope_head_dim=10,
               scale_emb=3, scale_depth=1.4, dim_model_base=48, tie_word_embeddings=True,
               rope_parameters=rope(rope_type="longrope", original_max_position_embeddings=20,
                                    short_factor=[1.0 + 0.1 * i for i in range(6)],
                                    long_factor=[1.0 + 0.6 * i for i in range(6)])), 2, {}),
    # No dimension is a multiple of a kernel's tile or vector size.
    "latent_depth_factors_odd": (
        config("MiniCPM3ForCausalLM", "minicpm3", hidden_size=52, head_dim=ABSENT,
               num_key_value_heads=4, intermediate_size=44, num_hidden_layers=5, q_lora_rank=None,
               kv_lora_rank=27, qk_rope_head_dim=6, qk_nope_head_dim=11, v_head_dim=9,
               attention_bias=True, mlp_bias=True, scale_emb=1.7, scale_depth=2, dim_model_base=60,
               rope_parameters=rope(20000.0)), 3, {}),
}
