// Tensor names of each family in its checkpoints, for the rows of family_table.cc.
#pragma once

#include "converter/family/decoder_spec.h"

namespace arn::convert {

inline constexpr TensorNames kDecoderNames = {
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
inline constexpr TensorNames kFusedNames = WithFusedProjections();

constexpr TensorNames WithPlainFeedForward() {
  TensorNames names = kDecoderNames;
  names.gate = nullptr;
  names.up = "model.layers.{}.mlp.c_fc";
  names.down = "model.layers.{}.mlp.c_proj";
  return names;
}
inline constexpr TensorNames kPlainFeedForwardNames = WithPlainFeedForward();

constexpr TensorNames WithoutGate() {
  TensorNames names = kDecoderNames;
  names.gate = nullptr;
  return names;
}
inline constexpr TensorNames kUngatedNames = WithoutGate();

constexpr TensorNames WithFusedFeedForward() {
  TensorNames names = kDecoderNames;
  names.gate = names.up = nullptr;
  names.gate_up = "model.layers.{}.mlp.gate_up_proj";
  return names;
}
inline constexpr TensorNames kFusedFeedForwardNames = WithFusedFeedForward();

constexpr TensorNames WithFusedSandwich() {
  TensorNames names = WithFusedFeedForward();
  names.attention_post_norm = "model.layers.{}.post_self_attn_layernorm";
  names.ffn_post_norm = "model.layers.{}.post_mlp_layernorm";
  return names;
}
inline constexpr TensorNames kFusedSandwichNames = WithFusedSandwich();

constexpr TensorNames WithQueryNorms() {
  TensorNames names = kDecoderNames;
  names.q_norm = "model.layers.{}.self_attn.query_layernorm";
  names.k_norm = "model.layers.{}.self_attn.key_layernorm";
  return names;
}
inline constexpr TensorNames kQueryNormNames = WithQueryNorms();

constexpr TensorNames WithXielu() {
  TensorNames names = WithoutGate();
  names.attention_norm = "model.layers.{}.attention_layernorm";
  names.ffn_norm = "model.layers.{}.feedforward_layernorm";
  names.act_parameters[0] = "model.layers.{}.mlp.act_fn.alpha_p";
  names.act_parameters[1] = "model.layers.{}.mlp.act_fn.alpha_n";
  names.act_parameters[2] = "model.layers.{}.mlp.act_fn.beta";
  names.act_parameters[3] = "model.layers.{}.mlp.act_fn.eps";
  return names;
}
inline constexpr TensorNames kXieluNames = WithXielu();

constexpr TensorNames WithSubNorms() {
  TensorNames names = kDecoderNames;
  names.attention_sub_norm = "model.layers.{}.self_attn.attn_sub_norm";
  names.ffn_sub_norm = "model.layers.{}.mlp.ffn_sub_norm";
  return names;
}
inline constexpr TensorNames kSubNormNames = WithSubNorms();

constexpr TensorNames WithDense() {
  TensorNames names = kDecoderNames;
  names.final_norm = "model.final_layernorm";
  names.attention_out = "model.layers.{}.self_attn.dense";
  names.ffn_norm = names.gate = nullptr;
  names.up = "model.layers.{}.mlp.fc1";
  names.down = "model.layers.{}.mlp.fc2";
  return names;
}
inline constexpr TensorNames kPhiNames = WithDense();

constexpr TensorNames WithSandwichNorms() {
  TensorNames names = kDecoderNames;
  names.attention_post_norm = "model.layers.{}.post_attention_layernorm";
  names.ffn_norm = "model.layers.{}.pre_feedforward_layernorm";
  names.ffn_post_norm = "model.layers.{}.post_feedforward_layernorm";
  return names;
}
inline constexpr TensorNames kSandwichNames = WithSandwichNorms();

constexpr TensorNames WithPreNormsOfSandwich() {
  TensorNames names = WithSandwichNorms();
  names.attention_post_norm = names.ffn_post_norm = nullptr;
  return names;
}
inline constexpr TensorNames kRenamedFfnNormNames = WithPreNormsOfSandwich();

constexpr TensorNames WithNumberedPostNorms() {
  TensorNames names = kDecoderNames;
  names.attention_post_norm = "model.layers.{}.post_norm1";
  names.ffn_post_norm = "model.layers.{}.post_norm2";
  return names;
}
inline constexpr TensorNames kNumberedPostNormNames = WithNumberedPostNorms();

constexpr TensorNames WithPostNorms() {
  TensorNames names = WithSandwichNorms();
  names.attention_norm = names.ffn_norm = nullptr;
  return names;
}
inline constexpr TensorNames kPostNormNames = WithPostNorms();

inline constexpr TensorNames kGptNeoxNames = {
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

inline constexpr TensorNames kLastBiasNames = {
    .other_parts = {{".attention.dense.bias", ".attention.dense_bias"}},
    .prefix = "gpt_neox_japanese.",
    .embedding = "gpt_neox_japanese.embed_in",
    .final_norm = "gpt_neox_japanese.final_layer_norm",
    .head = "embed_out",
    .attention_norm = "gpt_neox_japanese.layers.{}.input_layernorm",
    .qkv = "gpt_neox_japanese.layers.{}.attention.query_key_value",
    .attention_out = "gpt_neox_japanese.layers.{}.attention.dense",
    .ffn_norm = "gpt_neox_japanese.layers.{}.post_attention_layernorm",
    .up = "gpt_neox_japanese.layers.{}.mlp.dense_h_to_4h",
    .down = "gpt_neox_japanese.layers.{}.mlp.dense_4h_to_h",
};

inline constexpr TensorNames kGpt2Names = {
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
inline constexpr TensorNames kGptNeoNames = WithSeparateProjections();

constexpr TensorNames WithOneNorm() {
  TensorNames names = kGpt2Names;
  names.positions = names.qkv = names.ffn_norm = nullptr;
  names.q = "transformer.h.{}.attn.q_proj";
  names.k = "transformer.h.{}.attn.k_proj";
  names.v = "transformer.h.{}.attn.v_proj";
  names.attention_out = "transformer.h.{}.attn.out_proj";
  names.up = "transformer.h.{}.mlp.fc_in";
  names.down = "transformer.h.{}.mlp.fc_out";
  return names;
}
inline constexpr TensorNames kGptJNames = WithOneNorm();

constexpr TensorNames WithOneNormAndFusedQkv() {
  TensorNames names = WithOneNorm();
  names.q = names.k = names.v = nullptr;
  names.qkv = "transformer.h.{}.attn.qkv_proj";
  return names;
}
inline constexpr TensorNames kCodeGenNames = WithOneNormAndFusedQkv();

inline constexpr TensorNames kFalconNames = {
    .prefix = "transformer.",
    .embedding = "transformer.word_embeddings",
    .final_norm = "transformer.ln_f",
    .head = "lm_head",
    .attention_norm = "transformer.h.{}.input_layernorm",
    .parallel_attention_norm = "transformer.h.{}.ln_attn",
    .parallel_ffn_norm = "transformer.h.{}.ln_mlp",
    .qkv = "transformer.h.{}.self_attention.query_key_value",
    .attention_out = "transformer.h.{}.self_attention.dense",
    .ffn_norm = "transformer.h.{}.post_attention_layernorm",
    .up = "transformer.h.{}.mlp.dense_h_to_4h",
    .down = "transformer.h.{}.mlp.dense_4h_to_h",
};

inline constexpr TensorNames kOptNames = {
    .prefix = "model.",
    .embedding = "model.decoder.embed_tokens",
    .positions = "model.decoder.embed_positions",
    .final_norm = "model.decoder.final_layer_norm",
    .head = "lm_head",
    .attention_norm = "model.decoder.layers.{}.self_attn_layer_norm",
    .q = "model.decoder.layers.{}.self_attn.q_proj",
    .k = "model.decoder.layers.{}.self_attn.k_proj",
    .v = "model.decoder.layers.{}.self_attn.v_proj",
    .attention_out = "model.decoder.layers.{}.self_attn.out_proj",
    .ffn_norm = "model.decoder.layers.{}.final_layer_norm",
    .up = "model.decoder.layers.{}.fc1",
    .down = "model.decoder.layers.{}.fc2",
};

inline constexpr TensorNames kBloomNames = {
    .prefix = "transformer.",
    .embedding = "transformer.word_embeddings",
    .embedding_norm = "transformer.word_embeddings_layernorm",
    .final_norm = "transformer.ln_f",
    .head = "lm_head",
    .attention_norm = "transformer.h.{}.input_layernorm",
    .qkv = "transformer.h.{}.self_attention.query_key_value",
    .attention_out = "transformer.h.{}.self_attention.dense",
    .ffn_norm = "transformer.h.{}.post_attention_layernorm",
    .up = "transformer.h.{}.mlp.dense_h_to_4h",
    .down = "transformer.h.{}.mlp.dense_4h_to_h",
};

inline constexpr TensorNames kMptNames = {
    .prefix = "transformer.",
    .embedding = "transformer.wte",
    .final_norm = "transformer.norm_f",
    .head = "lm_head",
    .attention_norm = "transformer.blocks.{}.norm_1",
    .qkv = "transformer.blocks.{}.attn.Wqkv",
    .attention_out = "transformer.blocks.{}.attn.out_proj",
    .ffn_norm = "transformer.blocks.{}.norm_2",
    .up = "transformer.blocks.{}.ffn.up_proj",
    .down = "transformer.blocks.{}.ffn.down_proj",
};

// Norms without weights: the names only say that they are there.
constexpr TensorNames WithPlainNorms() {
  TensorNames names = kDecoderNames;
  names.embedding_norm = names.final_norm;
  names.q_norm = names.k_norm = names.gate = nullptr;
  names.up = "model.layers.{}.mlp.fc1";
  names.down = "model.layers.{}.mlp.fc2";
  return names;
}
inline constexpr TensorNames kPlainNormNames = WithPlainNorms();

constexpr TensorNames WithExperts() {
  TensorNames names = kDecoderNames;
  names.router = "model.layers.{}.mlp.gate";
  names.expert_gate = "model.layers.{}.mlp.experts.{}.gate_proj";
  names.expert_up = "model.layers.{}.mlp.experts.{}.up_proj";
  names.expert_down = "model.layers.{}.mlp.experts.{}.down_proj";
  names.stacked_gate_up = "model.layers.{}.mlp.experts.gate_up_proj";
  names.stacked_down = "model.layers.{}.mlp.experts.down_proj";
  return names;
}
inline constexpr TensorNames kExpertNames = WithExperts();

constexpr TensorNames WithBlockExperts() {
  TensorNames names = kDecoderNames;
  names.router = "model.layers.{}.block_sparse_moe.gate";
  names.expert_gate = "model.layers.{}.block_sparse_moe.experts.{}.w1";
  names.expert_up = "model.layers.{}.block_sparse_moe.experts.{}.w3";
  names.expert_down = "model.layers.{}.block_sparse_moe.experts.{}.w2";
  return names;
}
inline constexpr TensorNames kBlockExpertNames = WithBlockExperts();

constexpr TensorNames WithSinks() {
  TensorNames names = kDecoderNames;
  names.sinks = "model.layers.{}.self_attn.sinks";
  names.router = "model.layers.{}.mlp.router";
  names.stacked_gate_up = "model.layers.{}.mlp.experts.gate_up_proj";
  names.stacked_down = "model.layers.{}.mlp.experts.down_proj";
  return names;
}
inline constexpr TensorNames kSinkNames = WithSinks();

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
inline constexpr TensorNames kSharedExpertNames = WithSharedExpert();

inline constexpr TensorNames kScanNames = {
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

constexpr TensorNames WithScanLayers() {
  TensorNames names = kDecoderNames;
  names.final_norm = "model.final_layernorm";
  names.q_norm = names.k_norm = nullptr;
  names.ffn_norm = "model.layers.{}.pre_ff_layernorm";
  names.gate = "model.layers.{}.feed_forward.gate_proj";
  names.up = "model.layers.{}.feed_forward.up_proj";
  names.down = "model.layers.{}.feed_forward.down_proj";
  names.router = "model.layers.{}.feed_forward.router";
  names.expert_gate = "model.layers.{}.feed_forward.experts.{}.gate_proj";
  names.expert_up = "model.layers.{}.feed_forward.experts.{}.up_proj";
  names.expert_down = "model.layers.{}.feed_forward.experts.{}.down_proj";
  names.stacked_gate_up = "model.layers.{}.feed_forward.experts.gate_up_proj";
  names.stacked_down = "model.layers.{}.feed_forward.experts.down_proj";
  names.mixer_in = "model.layers.{}.mamba.in_proj";
  names.conv = "model.layers.{}.mamba.conv1d";
  names.scan_inputs = "model.layers.{}.mamba.x_proj";
  names.scan_steps = "model.layers.{}.mamba.dt_proj";
  names.scan_rates = "model.layers.{}.mamba.A_log";
  names.scan_skip = "model.layers.{}.mamba.D";
  names.scan_low_norm = "model.layers.{}.mamba.dt_layernorm";
  names.scan_b_norm = "model.layers.{}.mamba.b_layernorm";
  names.scan_c_norm = "model.layers.{}.mamba.c_layernorm";
  names.mixer_out = "model.layers.{}.mamba.out_proj";
  return names;
}
inline constexpr TensorNames kScanLayerNames = WithScanLayers();

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
inline constexpr TensorNames kShortConvolutionNames = WithShortConvolutions();

inline constexpr TensorNames kT5DecoderNames = {
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
    .relative_position_bias = "decoder.block.0.layer.0.SelfAttention.relative_attention_bias",
    .cross_norm = "decoder.block.{}.layer.1.layer_norm",
    .cross_q = "decoder.block.{}.layer.1.EncDecAttention.q",
    .cross_k = "decoder.block.{}.layer.1.EncDecAttention.k",
    .cross_v = "decoder.block.{}.layer.1.EncDecAttention.v",
    .cross_out = "decoder.block.{}.layer.1.EncDecAttention.o",
    .embedding_copies = {"encoder.embed_tokens", "decoder.embed_tokens"},
};

inline constexpr TensorNames kT5EncoderNames = {
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
    .relative_position_bias = "encoder.block.0.layer.0.SelfAttention.relative_attention_bias",
};

constexpr TensorNames WithBiasOfEachLayer(TensorNames names, const char* bias) {
  names.relative_position_bias = bias;
  return names;
}
inline constexpr TensorNames kUmt5DecoderNames = WithBiasOfEachLayer(
    kT5DecoderNames, "decoder.block.{}.layer.0.SelfAttention.relative_attention_bias");
inline constexpr TensorNames kUmt5EncoderNames = WithBiasOfEachLayer(
    kT5EncoderNames, "encoder.block.{}.layer.0.SelfAttention.relative_attention_bias");

inline constexpr TensorNames kSandwichEncoderNames = {
    .prefix = "model.",
    .embedding = "model.encoder.embed_tokens",
    .final_norm = "model.encoder.norm",
    .head = "lm_head.out_proj",
    .attention_norm = "model.encoder.layers.{}.pre_self_attn_layernorm",
    .q = "model.encoder.layers.{}.self_attn.q_proj",
    .k = "model.encoder.layers.{}.self_attn.k_proj",
    .v = "model.encoder.layers.{}.self_attn.v_proj",
    .attention_out = "model.encoder.layers.{}.self_attn.o_proj",
    .attention_post_norm = "model.encoder.layers.{}.post_self_attn_layernorm",
    .ffn_norm = "model.encoder.layers.{}.pre_feedforward_layernorm",
    .gate = "model.encoder.layers.{}.mlp.gate_proj",
    .up = "model.encoder.layers.{}.mlp.up_proj",
    .down = "model.encoder.layers.{}.mlp.down_proj",
    .ffn_post_norm = "model.encoder.layers.{}.post_feedforward_layernorm",
};

inline constexpr TensorNames kSandwichDecoderNames = {
    .prefix = "model.",
    .embedding = "model.decoder.embed_tokens",
    .final_norm = "model.decoder.norm",
    .head = "lm_head.out_proj",
    .attention_norm = "model.decoder.layers.{}.pre_self_attn_layernorm",
    .q = "model.decoder.layers.{}.self_attn.q_proj",
    .k = "model.decoder.layers.{}.self_attn.k_proj",
    .v = "model.decoder.layers.{}.self_attn.v_proj",
    .attention_out = "model.decoder.layers.{}.self_attn.o_proj",
    .attention_post_norm = "model.decoder.layers.{}.post_self_attn_layernorm",
    .ffn_norm = "model.decoder.layers.{}.pre_feedforward_layernorm",
    .gate = "model.decoder.layers.{}.mlp.gate_proj",
    .up = "model.decoder.layers.{}.mlp.up_proj",
    .down = "model.decoder.layers.{}.mlp.down_proj",
    .ffn_post_norm = "model.decoder.layers.{}.post_feedforward_layernorm",
    .cross_norm = "model.decoder.layers.{}.pre_cross_attn_layernorm",
    .cross_q = "model.decoder.layers.{}.cross_attn.q_proj",
    .cross_k = "model.decoder.layers.{}.cross_attn.k_proj",
    .cross_v = "model.decoder.layers.{}.cross_attn.v_proj",
    .cross_out = "model.decoder.layers.{}.cross_attn.o_proj",
    .cross_post_norm = "model.decoder.layers.{}.post_cross_attn_layernorm",
};

inline constexpr TensorNames kWhisperDecoderNames = {
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

inline constexpr TensorNames kWhisperEncoderNames = {
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
};

inline constexpr TensorNames kSampleDecoderNames = {
    .prefix = "model.",
    .embedding = "model.decoder.embed_tokens",
    .final_norm = "model.decoder.norm",
    .head = "proj_out",
    .attention_norm = "model.decoder.layers.{}.input_layernorm",
    .q = "model.decoder.layers.{}.self_attn.q_proj",
    .k = "model.decoder.layers.{}.self_attn.k_proj",
    .v = "model.decoder.layers.{}.self_attn.v_proj",
    .attention_out = "model.decoder.layers.{}.self_attn.o_proj",
    .ffn_norm = "model.decoder.layers.{}.final_layernorm",
    .gate_up = "model.decoder.layers.{}.mlp.fc1",
    .down = "model.decoder.layers.{}.mlp.fc2",
    .cross_norm = "model.decoder.layers.{}.post_attention_layernorm",
    .cross_q = "model.decoder.layers.{}.encoder_attn.q_proj",
    .cross_k = "model.decoder.layers.{}.encoder_attn.k_proj",
    .cross_v = "model.decoder.layers.{}.encoder_attn.v_proj",
    .cross_out = "model.decoder.layers.{}.encoder_attn.o_proj",
};

inline constexpr TensorNames kSampleEncoderNames = {
    .prefix = "model.",
    .embedding = "model.decoder.embed_tokens",
    .final_norm = "model.encoder.layer_norm",
    .head = "proj_out",
    .attention_norm = "model.encoder.layers.{}.input_layernorm",
    .q = "model.encoder.layers.{}.self_attn.q_proj",
    .k = "model.encoder.layers.{}.self_attn.k_proj",
    .v = "model.encoder.layers.{}.self_attn.v_proj",
    .attention_out = "model.encoder.layers.{}.self_attn.o_proj",
    .ffn_norm = "model.encoder.layers.{}.post_attention_layernorm",
    .up = "model.encoder.layers.{}.mlp.fc1",
    .down = "model.encoder.layers.{}.mlp.fc2",
};

inline constexpr TensorNames kMtpNames = {
    .prefix = "mtp.",
    .mtp_prefix = "mtp.",
    .mtp_embedding_norm = "mtp.pre_fc_norm_embedding",
    .mtp_hidden_norm = "mtp.pre_fc_norm_hidden",
    .mtp_fc = "mtp.fc",
    .embedding = nullptr,
    .final_norm = "mtp.norm",
    .attention_norm = "mtp.layers.{}.input_layernorm",
    .q = "mtp.layers.{}.self_attn.q_proj",
    .k = "mtp.layers.{}.self_attn.k_proj",
    .v = "mtp.layers.{}.self_attn.v_proj",
    .q_norm = "mtp.layers.{}.self_attn.q_norm",
    .k_norm = "mtp.layers.{}.self_attn.k_norm",
    .attention_out = "mtp.layers.{}.self_attn.o_proj",
    .ffn_norm = "mtp.layers.{}.post_attention_layernorm",
    .gate = "mtp.layers.{}.mlp.gate_proj",
    .up = "mtp.layers.{}.mlp.up_proj",
    .down = "mtp.layers.{}.mlp.down_proj",
    .router = "mtp.layers.{}.mlp.gate",
    .expert_gate = "mtp.layers.{}.mlp.experts.{}.gate_proj",
    .expert_up = "mtp.layers.{}.mlp.experts.{}.up_proj",
    .expert_down = "mtp.layers.{}.mlp.experts.{}.down_proj",
    .stacked_gate_up = "mtp.layers.{}.mlp.experts.gate_up_proj",
    .stacked_down = "mtp.layers.{}.mlp.experts.down_proj",
    .shared_gate = "mtp.layers.{}.mlp.shared_expert.gate_proj",
    .shared_up = "mtp.layers.{}.mlp.shared_expert.up_proj",
    .shared_down = "mtp.layers.{}.mlp.shared_expert.down_proj",
    .shared_gate_score = "mtp.layers.{}.mlp.shared_expert_gate",
};

constexpr TensorNames WithDeltaRule() {
  TensorNames names = kDecoderNames;
  names.extra_head = "mtp.";
  names.mtp = &kMtpNames;
  names.mixer_qkv = "model.layers.{}.linear_attn.in_proj_qkv";
  names.mixer_z = "model.layers.{}.linear_attn.in_proj_z";
  names.mixer_b = "model.layers.{}.linear_attn.in_proj_b";
  names.mixer_a = "model.layers.{}.linear_attn.in_proj_a";
  names.conv = "model.layers.{}.linear_attn.conv1d";
  names.scan_rates = "model.layers.{}.linear_attn.A_log";
  names.time_step_bias = "model.layers.{}.linear_attn.dt_bias";
  names.mixer_norm = "model.layers.{}.linear_attn.norm";
  names.mixer_out = "model.layers.{}.linear_attn.out_proj";
  return names;
}
inline constexpr TensorNames kDeltaRuleNames = WithDeltaRule();

constexpr TensorNames WithFusedDeltaRule() {
  TensorNames names = kDeltaRuleNames;
  names.mixer_qkv = names.mixer_z = names.mixer_b = names.mixer_a = nullptr;
  names.mixer_qkvz = "model.layers.{}.linear_attn.in_proj_qkvz";
  names.mixer_ba = "model.layers.{}.linear_attn.in_proj_ba";
  return names;
}
inline constexpr TensorNames kFusedDeltaRuleNames = WithFusedDeltaRule();

constexpr TensorNames WithMamba2() {
  TensorNames names = kScanNames;
  names.scan_inputs = names.scan_steps = nullptr;
  names.time_step_bias = "backbone.layers.{}.mixer.dt_bias";
  names.mixer_norm = "backbone.layers.{}.mixer.norm";
  return names;
}
inline constexpr TensorNames kMamba2Names = WithMamba2();

constexpr TensorNames WithMambaLayers() {
  TensorNames names = kDecoderNames;
  names.mixer_in = "model.layers.{}.mamba.in_proj";
  names.conv = "model.layers.{}.mamba.conv1d";
  names.scan_rates = "model.layers.{}.mamba.A_log";
  names.scan_skip = "model.layers.{}.mamba.D";
  names.time_step_bias = "model.layers.{}.mamba.dt_bias";
  names.mixer_norm = "model.layers.{}.mamba.norm";
  names.mixer_out = "model.layers.{}.mamba.out_proj";
  names.final_norm = "model.final_layernorm";
  names.ffn_norm = "model.layers.{}.pre_ff_layernorm";
  names.gate = "model.layers.{}.feed_forward.gate_proj";
  names.up = "model.layers.{}.feed_forward.up_proj";
  names.down = "model.layers.{}.feed_forward.down_proj";
  return names;
}
inline constexpr TensorNames kMambaLayerNames = WithMambaLayers();

constexpr TensorNames WithSharedMlp() {
  TensorNames names = kMambaLayerNames;
  names.final_norm = "model.norm";
  names.ffn_norm = "model.layers.{}.post_attention_layernorm";
  names.gate = names.up = nullptr;
  names.gate_up = "model.layers.{}.shared_mlp.input_linear";
  names.down = "model.layers.{}.shared_mlp.output_linear";
  return names;
}
inline constexpr TensorNames kSharedMlpNames = WithSharedMlp();

// Layers of one block each: all tensors have the same place.
inline constexpr TensorNames kMambaBlockNames = {
    .prefix = "model.",
    .older_prefix = "backbone.",
    .extra_head = "mtp.",
    .embedding = "model.embeddings",
    .other_embedding = "model.embedding",
    .final_norm = "model.norm_f",
    .head = "lm_head",
    .attention_norm = "model.layers.{}.norm",
    .q = "model.layers.{}.mixer.q_proj",
    .k = "model.layers.{}.mixer.k_proj",
    .v = "model.layers.{}.mixer.v_proj",
    .attention_out = "model.layers.{}.mixer.o_proj",
    .ffn_norm = "model.layers.{}.norm",
    .up = "model.layers.{}.mixer.up_proj",
    .down = "model.layers.{}.mixer.down_proj",
    .router = "model.layers.{}.mixer.gate",
    .expert_up = "model.layers.{}.mixer.experts.{}.up_proj",
    .expert_down = "model.layers.{}.mixer.experts.{}.down_proj",
    .shared_up = "model.layers.{}.mixer.shared_experts.up_proj",
    .shared_down = "model.layers.{}.mixer.shared_experts.down_proj",
    .router_correction = "model.layers.{}.mixer.gate.e_score_correction_bias",
    .mixer_in = "model.layers.{}.mixer.in_proj",
    .conv = "model.layers.{}.mixer.conv1d",
    .scan_rates = "model.layers.{}.mixer.A_log",
    .scan_skip = "model.layers.{}.mixer.D",
    .mixer_out = "model.layers.{}.mixer.out_proj",
    .time_step_bias = "model.layers.{}.mixer.dt_bias",
    .mixer_norm = "model.layers.{}.mixer.norm",
};

}  // namespace arn::convert
