#include "converter/family.h"

namespace arn::convert {
namespace {

constexpr TensorNames kDecoderNames = {
    .prefix = "model.",
    .embedding = "model.embed_tokens",
    .final_norm = "model.norm",
    .head = "lm_head",
    .attention_norm = "model.layers.{}.input_layernorm",
    .q = "model.layers.{}.self_attn.q_proj",
    .k = "model.layers.{}.self_attn.k_proj",
    .v = "model.layers.{}.self_attn.v_proj",
    .q_norm = "model.layers.{}.self_attn.q_norm",
    .k_norm = "model.layers.{}.self_attn.k_norm",
    .attention_out = "model.layers.{}.self_attn.o_proj",
    .ffn_norm = "model.layers.{}.post_attention_layernorm",
    .gate = "model.layers.{}.mlp.gate_proj",
    .up = "model.layers.{}.mlp.up_proj",
    .down = "model.layers.{}.mlp.down_proj",
};

constexpr TensorNames WithFusedProjections() {
  TensorNames names = kDecoderNames;
  names.q = names.k = names.v = names.gate = names.up = nullptr;
  names.qkv = "model.layers.{}.self_attn.qkv_proj";
  names.gate_up = "model.layers.{}.mlp.gate_up_proj";
  return names;
}
constexpr TensorNames kFusedNames = WithFusedProjections();

constexpr TensorNames WithPlainFeedForward() {
  TensorNames names = kDecoderNames;
  names.gate = nullptr;
  names.up = "model.layers.{}.mlp.c_fc";
  names.down = "model.layers.{}.mlp.c_proj";
  return names;
}
constexpr TensorNames kPlainFeedForwardNames = WithPlainFeedForward();

constexpr TensorNames WithSandwichNorms() {
  TensorNames names = kDecoderNames;
  names.attention_post_norm = "model.layers.{}.post_attention_layernorm";
  names.ffn_norm = "model.layers.{}.pre_feedforward_layernorm";
  names.ffn_post_norm = "model.layers.{}.post_feedforward_layernorm";
  return names;
}
constexpr TensorNames kSandwichNames = WithSandwichNorms();

constexpr TensorNames WithPostNorms() {
  TensorNames names = WithSandwichNorms();
  names.attention_norm = names.ffn_norm = nullptr;
  return names;
}
constexpr TensorNames kPostNormNames = WithPostNorms();

constexpr TensorNames kGptNeoxNames = {
    .prefix = "gpt_neox.",
    .embedding = "gpt_neox.embed_in",
    .final_norm = "gpt_neox.final_layer_norm",
    .head = "embed_out",
    .attention_norm = "gpt_neox.layers.{}.input_layernorm",
    .qkv = "gpt_neox.layers.{}.attention.query_key_value",
    .attention_out = "gpt_neox.layers.{}.attention.dense",
    .ffn_norm = "gpt_neox.layers.{}.post_attention_layernorm",
    .up = "gpt_neox.layers.{}.mlp.dense_h_to_4h",
    .down = "gpt_neox.layers.{}.mlp.dense_4h_to_h",
};

constexpr TensorNames kGpt2Names = {
    .prefix = "transformer.",
    .embedding = "transformer.wte",
    .positions = "transformer.wpe",
    .final_norm = "transformer.ln_f",
    .head = "lm_head",
    .attention_norm = "transformer.h.{}.ln_1",
    .qkv = "transformer.h.{}.attn.c_attn",
    .attention_out = "transformer.h.{}.attn.c_proj",
    .ffn_norm = "transformer.h.{}.ln_2",
    .up = "transformer.h.{}.mlp.c_fc",
    .down = "transformer.h.{}.mlp.c_proj",
};

constexpr TensorNames WithSeparateProjections() {
  TensorNames names = kGpt2Names;
  names.qkv = nullptr;
  names.q = "transformer.h.{}.attn.attention.q_proj";
  names.k = "transformer.h.{}.attn.attention.k_proj";
  names.v = "transformer.h.{}.attn.attention.v_proj";
  names.attention_out = "transformer.h.{}.attn.attention.out_proj";
  return names;
}
constexpr TensorNames kGptNeoNames = WithSeparateProjections();

constexpr TensorNames WithExperts() {
  TensorNames names = kDecoderNames;
  names.router = "model.layers.{}.mlp.gate";
  names.expert_gate = "model.layers.{}.mlp.experts.{}.gate_proj";
  names.expert_up = "model.layers.{}.mlp.experts.{}.up_proj";
  names.expert_down = "model.layers.{}.mlp.experts.{}.down_proj";
  return names;
}
constexpr TensorNames kExpertNames = WithExperts();

constexpr TensorNames WithBlockExperts() {
  TensorNames names = kDecoderNames;
  names.router = "model.layers.{}.block_sparse_moe.gate";
  names.expert_gate = "model.layers.{}.block_sparse_moe.experts.{}.w1";
  names.expert_up = "model.layers.{}.block_sparse_moe.experts.{}.w3";
  names.expert_down = "model.layers.{}.block_sparse_moe.experts.{}.w2";
  return names;
}
constexpr TensorNames kBlockExpertNames = WithBlockExperts();

constexpr TensorNames WithSinks() {
  TensorNames names = kDecoderNames;
  names.sinks = "model.layers.{}.self_attn.sinks";
  names.router = "model.layers.{}.mlp.router";
  names.stacked_gate_up = "model.layers.{}.mlp.experts.gate_up_proj";
  names.stacked_down = "model.layers.{}.mlp.experts.down_proj";
  return names;
}
constexpr TensorNames kSinkNames = WithSinks();

constexpr TensorNames WithSharedExpert() {
  TensorNames names = kDecoderNames;
  names.gate = "model.layers.{}.feed_forward.gate_proj";
  names.up = "model.layers.{}.feed_forward.up_proj";
  names.down = "model.layers.{}.feed_forward.down_proj";
  names.router = "model.layers.{}.feed_forward.router";
  names.stacked_gate_up = "model.layers.{}.feed_forward.experts.gate_up_proj";
  names.stacked_down = "model.layers.{}.feed_forward.experts.down_proj";
  names.shared_gate = "model.layers.{}.feed_forward.shared_expert.gate_proj";
  names.shared_up = "model.layers.{}.feed_forward.shared_expert.up_proj";
  names.shared_down = "model.layers.{}.feed_forward.shared_expert.down_proj";
  names.q_norm = names.k_norm = nullptr;
  return names;
}
constexpr TensorNames kSharedExpertNames = WithSharedExpert();

constexpr TensorNames kScanNames = {
    .prefix = "backbone.",
    .embedding = "backbone.embeddings",
    .final_norm = "backbone.norm_f",
    .head = "lm_head",
    .attention_norm = "backbone.layers.{}.norm",
    .mixer_in = "backbone.layers.{}.mixer.in_proj",
    .conv = "backbone.layers.{}.mixer.conv1d",
    .scan_inputs = "backbone.layers.{}.mixer.x_proj",
    .scan_steps = "backbone.layers.{}.mixer.dt_proj",
    .scan_rates = "backbone.layers.{}.mixer.A_log",
    .scan_skip = "backbone.layers.{}.mixer.D",
    .mixer_out = "backbone.layers.{}.mixer.out_proj",
};

constexpr TensorNames WithShortConvolutions() {
  TensorNames names = kDecoderNames;
  names.final_norm = "model.embedding_norm";
  names.attention_norm = "model.layers.{}.operator_norm";
  names.ffn_norm = "model.layers.{}.ffn_norm";
  names.q_norm = "model.layers.{}.self_attn.q_layernorm";
  names.k_norm = "model.layers.{}.self_attn.k_layernorm";
  names.attention_out = "model.layers.{}.self_attn.out_proj";
  names.gate = "model.layers.{}.feed_forward.w1";
  names.up = "model.layers.{}.feed_forward.w3";
  names.down = "model.layers.{}.feed_forward.w2";
  names.mixer_in = "model.layers.{}.conv.in_proj";
  names.conv = "model.layers.{}.conv.conv";
  names.mixer_out = "model.layers.{}.conv.out_proj";
  return names;
}
constexpr TensorNames kShortConvolutionNames = WithShortConvolutions();

// Families without positions are not bound to a context; sessions are, by their memory. This is
// the longest that the runtime takes.
constexpr uint32_t kAnyContext = 1u << 24;

constexpr TensorNames kT5DecoderNames = {
    .prefix = "",
    .embedding = "shared",
    .final_norm = "decoder.final_layer_norm",
    .head = "lm_head",
    .attention_norm = "decoder.block.{}.layer.0.layer_norm",
    .q = "decoder.block.{}.layer.0.SelfAttention.q",
    .k = "decoder.block.{}.layer.0.SelfAttention.k",
    .v = "decoder.block.{}.layer.0.SelfAttention.v",
    .attention_out = "decoder.block.{}.layer.0.SelfAttention.o",
    .ffn_norm = "decoder.block.{}.layer.2.layer_norm",
    .gate = "decoder.block.{}.layer.2.DenseReluDense.wi_0",
    .up = "decoder.block.{}.layer.2.DenseReluDense.wi_1",
    .down = "decoder.block.{}.layer.2.DenseReluDense.wo",
    .plain_up = "decoder.block.{}.layer.2.DenseReluDense.wi",
    .distance_bias = "decoder.block.0.layer.0.SelfAttention.relative_attention_bias",
    .cross_norm = "decoder.block.{}.layer.1.layer_norm",
    .cross_q = "decoder.block.{}.layer.1.EncDecAttention.q",
    .cross_k = "decoder.block.{}.layer.1.EncDecAttention.k",
    .cross_v = "decoder.block.{}.layer.1.EncDecAttention.v",
    .cross_out = "decoder.block.{}.layer.1.EncDecAttention.o",
    .embedding_copies = {"encoder.embed_tokens", "decoder.embed_tokens"},
};

constexpr TensorNames kT5SourceNames = {
    .prefix = "",
    .embedding = "shared",
    .final_norm = "encoder.final_layer_norm",
    .head = "lm_head",
    .attention_norm = "encoder.block.{}.layer.0.layer_norm",
    .q = "encoder.block.{}.layer.0.SelfAttention.q",
    .k = "encoder.block.{}.layer.0.SelfAttention.k",
    .v = "encoder.block.{}.layer.0.SelfAttention.v",
    .attention_out = "encoder.block.{}.layer.0.SelfAttention.o",
    .ffn_norm = "encoder.block.{}.layer.1.layer_norm",
    .gate = "encoder.block.{}.layer.1.DenseReluDense.wi_0",
    .up = "encoder.block.{}.layer.1.DenseReluDense.wi_1",
    .down = "encoder.block.{}.layer.1.DenseReluDense.wo",
    .plain_up = "encoder.block.{}.layer.1.DenseReluDense.wi",
    .distance_bias = "encoder.block.0.layer.0.SelfAttention.relative_attention_bias",
};

constexpr SourceFamily kT5Source = {
    .names = &kT5SourceNames,
    .keys = {.layers = "num_layers",
             .heads = "num_heads",
             .ffn = "d_ff",
             .epsilon = "layer_norm_epsilon",
             .head_dim = "d_kv"},
    .default_rows = 4096,
};

constexpr TensorNames kWhisperDecoderNames = {
    .prefix = "model.",
    .embedding = "model.decoder.embed_tokens",
    .positions = "model.decoder.embed_positions",
    .final_norm = "model.decoder.layer_norm",
    .head = "proj_out",
    .attention_norm = "model.decoder.layers.{}.self_attn_layer_norm",
    .q = "model.decoder.layers.{}.self_attn.q_proj",
    .k = "model.decoder.layers.{}.self_attn.k_proj",
    .v = "model.decoder.layers.{}.self_attn.v_proj",
    .attention_out = "model.decoder.layers.{}.self_attn.out_proj",
    .ffn_norm = "model.decoder.layers.{}.final_layer_norm",
    .up = "model.decoder.layers.{}.fc1",
    .down = "model.decoder.layers.{}.fc2",
    .cross_norm = "model.decoder.layers.{}.encoder_attn_layer_norm",
    .cross_q = "model.decoder.layers.{}.encoder_attn.q_proj",
    .cross_k = "model.decoder.layers.{}.encoder_attn.k_proj",
    .cross_v = "model.decoder.layers.{}.encoder_attn.v_proj",
    .cross_out = "model.decoder.layers.{}.encoder_attn.out_proj",
};

constexpr TensorNames kWhisperSourceNames = {
    .prefix = "model.",
    .embedding = "model.decoder.embed_tokens",
    .positions = "model.encoder.embed_positions",
    .final_norm = "model.encoder.layer_norm",
    .head = "proj_out",
    .attention_norm = "model.encoder.layers.{}.self_attn_layer_norm",
    .q = "model.encoder.layers.{}.self_attn.q_proj",
    .k = "model.encoder.layers.{}.self_attn.k_proj",
    .v = "model.encoder.layers.{}.self_attn.v_proj",
    .attention_out = "model.encoder.layers.{}.self_attn.out_proj",
    .ffn_norm = "model.encoder.layers.{}.final_layer_norm",
    .up = "model.encoder.layers.{}.fc1",
    .down = "model.encoder.layers.{}.fc2",
    .conv1 = "model.encoder.conv1",
    .conv2 = "model.encoder.conv2",
};

constexpr SourceFamily kWhisperSource = {
    .names = &kWhisperSourceNames,
    .keys = {.layers = "encoder_layers",
             .heads = "encoder_attention_heads",
             .ffn = "encoder_ffn_dim",
             .activation = "activation_function"},
    .rows_key = "max_source_positions",
    .default_rows = 1500,
    .feature_key = "num_mel_bins",
};

constexpr Family kFamilies[] = {
    {.architecture = "LlamaForCausalLM",
     .model_type = "llama",
     .names = &kDecoderNames,
     .qkv_bias = Bias::kByKey,
     .attention_out_bias = Bias::kByKey,
     .mlp_bias = Bias::kByKey},
    {.architecture = "MistralForCausalLM",
     .model_type = "mistral",
     .names = &kDecoderNames,
     .window = WindowRule::kEveryLayer,
     .default_window = 4096,
     .default_kv_heads = 8,
     .default_max_context = 131072},
    {.architecture = "Qwen2ForCausalLM",
     .model_type = "qwen2",
     .names = &kDecoderNames,
     .qkv_bias = Bias::kAlways,
     .window = WindowRule::kFromLayer,
     .default_window = 4096,
     .default_kv_heads = 32,
     .default_max_context = 32768},
    {.architecture = "Qwen3ForCausalLM",
     .model_type = "qwen3",
     .names = &kDecoderNames,
     .qkv_bias = Bias::kByKey,
     .attention_out_bias = Bias::kByKey,
     .qk_norm = QkNorm::kEachHead,
     .window = WindowRule::kFromLayer,
     .default_window = 4096,
     .default_head_dim = 128,
     .default_kv_heads = 32,
     .default_max_context = 32768},
    {.architecture = "Gemma2ForCausalLM",
     .model_type = "gemma2",
     .names = &kSandwichNames,
     .keys = {.activation = "hidden_activation"},
     .qkv_bias = Bias::kByKey,
     .attention_out_bias = Bias::kByKey,
     .norm_offset = 1.0f,
     .activation = "gelu_pytorch_tanh",
     .window = WindowRule::kPattern,
     .default_window = 4096,
     .default_pattern = 2,
     .scale = ScaleRule::kQueryPreScalar,
     .has_softcaps = true,
     .default_attention_softcap = 50,
     .default_logits_softcap = 30,
     .scales_embedding = true,
     .default_head_dim = 256,
     .default_kv_heads = 4,
     .default_max_context = 8192,
     .default_tied = true},
    {.architecture = "Gemma3ForCausalLM",
     .model_type = "gemma3_text",
     .names = &kSandwichNames,
     .keys = {.activation = "hidden_activation"},
     .qkv_bias = Bias::kByKey,
     .attention_out_bias = Bias::kByKey,
     .norm_offset = 1.0f,
     .qk_norm = QkNorm::kEachHead,
     .activation = "gelu_pytorch_tanh",
     .window = WindowRule::kPattern,
     .default_window = 4096,
     .default_pattern = 6,
     .rope = RopeRule::kByWindow,
     .default_theta = 1000000.0,
     .scale = ScaleRule::kQueryPreScalar,
     .has_softcaps = true,
     .scales_embedding = true,
     .default_head_dim = 256,
     .default_kv_heads = 4,
     .default_max_context = 131072,
     .default_tied = true},
    {.architecture = "Phi3ForCausalLM",
     .model_type = "phi3",
     .names = &kFusedNames,
     .default_epsilon = 1e-5,
     .window = WindowRule::kEveryLayer,
     .has_partial_rotary = true,
     .default_max_context = 4096},
    {.architecture = "GPTNeoXForCausalLM",
     .model_type = "gpt_neox",
     .names = &kGptNeoxNames,
     .keys = {.epsilon = "layer_norm_eps"},
     .qkv_order = QkvOrder::kByHead,
     .qkv_bias = Bias::kByKey,
     .attention_out_bias = Bias::kByKey,
     .mlp_bias = Bias::kAlways,
     .default_bias = true,
     .norm = NormKind::kLayer,
     .default_epsilon = 1e-5,
     .activation = "gelu",
     .is_gated = false,
     .parallel_key = "use_parallel_residual",
     .has_partial_rotary = true,
     .default_partial_rotary = 0.25},
    {.architecture = "GPT2LMHeadModel",
     .model_type = "gpt2",
     .names = &kGpt2Names,
     .keys = {.hidden = "n_embd",
              .layers = "n_layer",
              .heads = "n_head",
              .ffn = "n_inner",
              .context = "n_positions",
              .epsilon = "layer_norm_epsilon",
              .activation = "activation_function"},
     .is_transposed = true,
     .qkv_bias = Bias::kAlways,
     .attention_out_bias = Bias::kAlways,
     .mlp_bias = Bias::kAlways,
     .norm = NormKind::kLayer,
     .default_epsilon = 1e-5,
     .activation = "gelu_new",
     .is_gated = false,
     .rope = RopeRule::kNone,
     .default_ffn_factor = 4,
     .default_max_context = 1024,
     .default_tied = true},
    {.architecture = "GPTNeoForCausalLM",
     .model_type = "gpt_neo",
     .names = &kGptNeoNames,
     .keys = {.layers = "num_layers",
              .heads = "num_heads",
              .epsilon = "layer_norm_epsilon",
              .activation = "activation_function"},
     .attention_out_bias = Bias::kAlways,
     .mlp_bias = Bias::kAlways,
     .norm = NormKind::kLayer,
     .default_epsilon = 1e-5,
     .activation = "gelu_new",
     .is_gated = false,
     .window = WindowRule::kLocalLayers,
     .default_window = 256,
     .rope = RopeRule::kNone,
     .scale = ScaleRule::kOne,
     .default_ffn_factor = 4,
     .default_max_context = 2048,
     .default_tied = true},
    {.architecture = "SmolLM3ForCausalLM",
     .model_type = "smollm3",
     .names = &kDecoderNames,
     .qkv_bias = Bias::kByKey,
     .attention_out_bias = Bias::kByKey,
     .mlp_bias = Bias::kByKey,
     .window = WindowRule::kLayerTypes,
     .rope = RopeRule::kNotEachFourth,
     .default_theta = 2000000.0,
     .default_kv_heads = 4,
     .default_max_context = 32768,
     .default_tied = true},
    {.architecture = "GraniteForCausalLM",
     .model_type = "granite",
     .names = &kDecoderNames,
     .qkv_bias = Bias::kByKey,
     .attention_out_bias = Bias::kByKey,
     .mlp_bias = Bias::kByKey,
     .scale = ScaleRule::kMultiplier,
     .has_multipliers = true},
    {.architecture = "Olmo2ForCausalLM",
     .model_type = "olmo2",
     .names = &kPostNormNames,
     .qkv_bias = Bias::kByKey,
     .attention_out_bias = Bias::kByKey,
     .default_epsilon = 1e-5,
     .qk_norm = QkNorm::kAllHeads},
    {.architecture = "MixtralForCausalLM",
     .model_type = "mixtral",
     .names = &kBlockExpertNames,
     .default_epsilon = 1e-5,
     .has_experts = true,
     .expert_ffn_key = "intermediate_size",
     .default_experts = 8,
     .default_experts_used = 2,
     .window = WindowRule::kEveryLayer,
     .default_theta = 1000000.0,
     .default_kv_heads = 8,
     .default_max_context = 131072},
    {.architecture = "Qwen3MoeForCausalLM",
     .model_type = "qwen3_moe",
     .names = &kExpertNames,
     .qkv_bias = Bias::kByKey,
     .attention_out_bias = Bias::kByKey,
     .qk_norm = QkNorm::kEachHead,
     .has_experts = true,
     .default_experts = 128,
     .default_experts_used = 8,
     .renormalise_key = "norm_topk_prob",
     .window = WindowRule::kFromLayer,
     .default_window = 4096,
     .default_kv_heads = 4,
     .default_max_context = 32768},
    {.architecture = "GptOssForCausalLM",
     .model_type = "gpt_oss",
     .names = &kSinkNames,
     .qkv_bias = Bias::kByKey,
     .attention_out_bias = Bias::kByKey,
     .mlp_bias = Bias::kAlways,
     .default_bias = true,
     .default_epsilon = 1e-5,
     .clamps_swiglu = true,
     .has_experts = true,
     .expert_ffn_key = "intermediate_size",
     .default_experts = 128,
     .default_experts_used = 4,
     .router_bias = Bias::kAlways,
     .gate_up_alternate = true,
     .window = WindowRule::kPattern,
     .default_window = 128,
     .default_pattern = 2,
     .default_theta = 150000.0,
     .default_head_dim = 64,
     .default_kv_heads = 8,
     .default_max_context = 131072},
    {.architecture = "Llama4ForCausalLM",
     .model_type = "llama4_text",
     .names = &kSharedExpertNames,
     .keys = {.ffn = "intermediate_size_mlp"},
     .qkv_bias = Bias::kByKey,
     .attention_out_bias = Bias::kByKey,
     .default_epsilon = 1e-5,
     .qk_norm = QkNorm::kPlainOfRotated,
     .has_experts = true,
     .expert_ffn_key = "intermediate_size",
     .default_experts = 16,
     .default_experts_used = 1,
     .route_score = RouteScore::kSigmoid,
     .routes_weigh_input = true,
     .has_shared_expert = true,
     .window = WindowRule::kChunks,
     .default_window = 8192,
     .rope = RopeRule::kNotEachFourth,
     .rotates_neighbours = true,
     .default_theta = 500000.0,
     .has_query_temperature = true,
     .default_head_dim = 128,
     .default_kv_heads = 8,
     .default_max_context = 131072},
    {.architecture = "T5ForConditionalGeneration",
     .model_type = "t5",
     .names = &kT5DecoderNames,
     .keys = {.hidden = "d_model",
              .layers = "num_decoder_layers",
              .heads = "num_heads",
              .ffn = "d_ff",
              .context = "max_target_length",
              .epsilon = "layer_norm_epsilon",
              .head_dim = "d_kv",
              .layers_fallback = "num_layers"},
     .activation = "relu",
     .has_feed_forward_proj = true,
     .has_distance_buckets = true,
     .scales_tied_head = true,
     .source = &kT5Source,
     .rope = RopeRule::kNone,
     .scale = ScaleRule::kOne,
     .default_head_dim = 64,
     .default_max_context = 4096,
     .default_tied = true},
    {.architecture = "WhisperForConditionalGeneration",
     .model_type = "whisper",
     .names = &kWhisperDecoderNames,
     .keys = {.hidden = "d_model",
              .layers = "decoder_layers",
              .heads = "decoder_attention_heads",
              .ffn = "decoder_ffn_dim",
              .context = "max_target_positions",
              .activation = "activation_function"},
     .qkv_bias = Bias::kAlways,
     .attention_out_bias = Bias::kAlways,
     .mlp_bias = Bias::kAlways,
     .norm = NormKind::kLayer,
     .default_epsilon = 1e-5,
     .activation = "gelu",
     .is_gated = false,
     .has_k_bias = false,
     .source = &kWhisperSource,
     .rope = RopeRule::kNone,
     .default_max_context = 448,
     .default_tied = true},
    {.architecture = "Starcoder2ForCausalLM",
     .model_type = "starcoder2",
     .names = &kPlainFeedForwardNames,
     .keys = {.epsilon = "norm_epsilon"},
     .qkv_bias = Bias::kByKey,
     .attention_out_bias = Bias::kByKey,
     .mlp_bias = Bias::kByKey,
     .bias_key = "use_bias",
     .mlp_bias_key = "use_bias",
     .default_bias = true,
     .norm = NormKind::kLayer,
     .default_epsilon = 1e-5,
     .activation = "gelu_pytorch_tanh",
     .is_gated = false,
     .window = WindowRule::kEveryLayer,
     .default_kv_heads = 2,
     .default_max_context = 4096,
     .default_tied = true},
    {.architecture = "MambaForCausalLM",
     .model_type = "mamba",
     .names = &kScanNames,
     .keys = {.epsilon = "layer_norm_epsilon"},
     .default_epsilon = 1e-5,
     .mixer = MixerRule::kScan,
     .ffn = FfnRule::kNone,
     .rope = RopeRule::kNone,
     .default_max_context = kAnyContext,
     .default_tied = true},
    {.architecture = "Lfm2ForCausalLM",
     .model_type = "lfm2",
     .names = &kShortConvolutionNames,
     .keys = {.epsilon = "norm_eps"},
     .default_epsilon = 1e-5,
     .qk_norm = QkNorm::kEachHead,
     .mixer = MixerRule::kConvByLayer,
     .ffn = FfnRule::kBlocks,
     .default_theta = 1000000.0,
     .default_kv_heads = 8,
     .default_max_context = 128000,
     .default_tied = true,
     .tied_key = "tie_embedding"},
};

}  // namespace

Span<const Family> Families() { return kFamilies; }

}  // namespace arn::convert
