// Tensor names of decoders in GGUF files, for the rows of architectures.
#pragma once

#include "converter/gguf/gguf_names.h"

namespace arn::convert::gguf {

inline constexpr TensorNames kNames = kGgufNames;

constexpr TensorNames WithFusedQkv() {
  TensorNames names = kNames;
  names.q = names.k = names.v = nullptr;
  names.qkv = "blk.{}.attn_qkv";
  return names;
}

constexpr TensorNames WithFusedProjections() {
  TensorNames names = WithFusedQkv();
  names.gate = names.up = nullptr;
  names.gate_up = "blk.{}.ffn_up";
  return names;
}
inline constexpr TensorNames kFusedNames = WithFusedProjections();

constexpr TensorNames WithFusedFeedForward() {
  TensorNames names = kNames;
  names.gate = names.up = nullptr;
  names.gate_up = "blk.{}.ffn_up";
  return names;
}
inline constexpr TensorNames kFusedFeedForwardNames = WithFusedFeedForward();

constexpr TensorNames WithPlainFeedForward(TensorNames names) {
  names.gate = nullptr;
  return names;
}
inline constexpr TensorNames kPlainNames = WithPlainFeedForward(kNames);

constexpr TensorNames WithActParameters() {
  TensorNames names = WithPlainFeedForward(kNames);
  names.act_parameters[0] = "blk.{}.xielu.alpha_p";
  names.act_parameters[1] = "blk.{}.xielu.alpha_n";
  names.act_parameters[2] = "blk.{}.xielu.beta";
  names.act_parameters[3] = "blk.{}.xielu.eps";
  return names;
}
inline constexpr TensorNames kActParameterNames = WithActParameters();

inline constexpr TensorNames kPlainFusedNames = WithPlainFeedForward(WithFusedQkv());

constexpr TensorNames WithPositions() {
  TensorNames names = kPlainFusedNames;
  names.positions = "position_embd";
  return names;
}
inline constexpr TensorNames kPositionNames = WithPositions();

constexpr TensorNames WithSandwichNorms() {
  TensorNames names = kNames;
  names.attention_post_norm = "blk.{}.post_attention_norm";
  names.ffn_post_norm = "blk.{}.post_ffw_norm";
  return names;
}
inline constexpr TensorNames kSandwichNames = WithSandwichNorms();

constexpr TensorNames WithPostNorms() {
  TensorNames names = WithSandwichNorms();
  names.attention_norm = names.ffn_norm = nullptr;
  return names;
}
inline constexpr TensorNames kPostNormNames = WithPostNorms();

constexpr TensorNames WithFusedSandwich() {
  TensorNames names = WithSandwichNorms();
  names.gate = names.up = nullptr;
  names.gate_up = "blk.{}.ffn_up";
  return names;
}
inline constexpr TensorNames kFusedSandwichNames = WithFusedSandwich();

// The norm before the feed-forward block is named after its place.
constexpr TensorNames WithRenamedFfnNorm(TensorNames names) {
  names.ffn_norm = "blk.{}.post_attention_norm";
  return names;
}
inline constexpr TensorNames kRenamedFfnNormNames = WithRenamedFfnNorm(kNames);

// The file stores a layer's experts in one tensor; these names refer to each expert by number.
constexpr TensorNames WithExperts() {
  TensorNames names = kNames;
  names.router = "blk.{}.ffn_gate_inp";
  names.expert_gate = "blk.{}.ffn_gate_exps.{}";
  names.expert_up = "blk.{}.ffn_up_exps.{}";
  names.expert_down = "blk.{}.ffn_down_exps.{}";
  return names;
}
inline constexpr TensorNames kExpertNames = WithExperts();

constexpr TensorNames WithCorrectedExperts() {
  TensorNames names = kExpertNames;
  names.router_correction = "blk.{}.exp_probs_b.bias";
  return names;
}
inline constexpr TensorNames kCorrectedExpertNames = WithCorrectedExperts();

constexpr TensorNames WithSinks() {
  TensorNames names = WithExperts();
  names.ffn_norm = "blk.{}.post_attention_norm";
  names.sinks = "blk.{}.attn_sinks.weight";
  return names;
}
inline constexpr TensorNames kSinkNames = WithSinks();

constexpr TensorNames WithSharedExpert() {
  TensorNames names = WithExperts();
  names.q_norm = names.k_norm = nullptr;
  names.shared_gate = "blk.{}.ffn_gate_shexp";
  names.shared_up = "blk.{}.ffn_up_shexp";
  names.shared_down = "blk.{}.ffn_down_shexp";
  return names;
}
inline constexpr TensorNames kSharedExpertNames = WithSharedExpert();

constexpr TensorNames WithNormsOfHeads(TensorNames names) {
  names.q_norm = kNames.q_norm;
  names.k_norm = kNames.k_norm;
  return names;
}
inline constexpr TensorNames kNormedSharedExpertNames = WithNormsOfHeads(kSharedExpertNames);

constexpr TensorNames WithSharedExpertGate() {
  TensorNames names = WithSharedExpert();
  names.shared_gate_score = "blk.{}.ffn_gate_inp_shexp";
  return names;
}
inline constexpr TensorNames kGatedSharedExpertNames = WithSharedExpertGate();

constexpr TensorNames WithRouterCorrection() {
  TensorNames names = WithNormsOfHeads(WithSharedExpert());
  names.router_correction = "blk.{}.exp_probs_b.bias";
  return names;
}
inline constexpr TensorNames kCorrectedRouterNames = WithRouterCorrection();

constexpr TensorNames WithHeadGates() {
  TensorNames names = WithRouterCorrection();
  names.attention_gate = "blk.{}.attn_gate";
  return names;
}
inline constexpr TensorNames kHeadGateNames = WithHeadGates();

// A multi-token prediction head, stored as one layer more.
constexpr TensorNames AsNextLayer(TensorNames names) {
  names.mtp_prefix = "blk.{}.";
  names.mtp_embedding_norm = "blk.{}.nextn.enorm";
  names.mtp_hidden_norm = "blk.{}.nextn.hnorm";
  names.mtp_fc = "blk.{}.nextn.eh_proj";
  names.mtp_embedding_copy = "blk.{}.nextn.embed_tokens";
  names.mtp_head_copy = "blk.{}.nextn.shared_head_head";
  names.final_norm = "blk.{}.nextn.shared_head_norm";
  return names;
}

constexpr TensorNames WithMtp(TensorNames names, const TensorNames* mtp) {
  names.mtp = mtp;
  return names;
}

inline constexpr TensorNames kRenamedCorrectedNextNames =
    AsNextLayer(WithRenamedFfnNorm(kCorrectedRouterNames));
inline constexpr TensorNames kRenamedCorrectedNames =
    WithMtp(WithRenamedFfnNorm(kCorrectedRouterNames), &kRenamedCorrectedNextNames);

constexpr TensorNames WithGatedAttention() {
  TensorNames names = WithRouterCorrection();
  names.attention_gate = "blk.{}.attn_gate";
  names.attention_post_norm = "blk.{}.post_attention_norm";
  names.ffn_post_norm = "blk.{}.post_ffw_norm";
  return names;
}
inline constexpr TensorNames kGatedAttentionNames = WithGatedAttention();

constexpr TensorNames WithLatentAttention(TensorNames names) {
  names.q_norm = names.k_norm = names.k = names.v = nullptr;
  names.q_low = "blk.{}.attn_q_a";
  names.q_low_norm = "blk.{}.attn_q_a_norm";
  names.q_up = "blk.{}.attn_q_b";
  names.latent = "blk.{}.attn_kv_a_mqa";
  names.latent_norm = "blk.{}.attn_kv_a_norm";
  names.latent_keys = "blk.{}.attn_k_b.{}";
  names.latent_values = "blk.{}.attn_v_b.{}";
  return names;
}
inline constexpr TensorNames kLatentNames = WithLatentAttention(kNames);

// The matrix of keys and values as in checkpoints.
constexpr TensorNames WithWholeLatent() {
  TensorNames names = kLatentNames;
  names.latent_keys = names.latent_values = nullptr;
  names.latent_up = "blk.{}.attn_kv_b";
  return names;
}
inline constexpr TensorNames kWholeLatentNames = WithWholeLatent();
inline constexpr TensorNames kLatentSharedExpertNames = WithLatentAttention(kSharedExpertNames);
inline constexpr TensorNames kLatentExpertNextNames =
    AsNextLayer(WithLatentAttention(kCorrectedRouterNames));
inline constexpr TensorNames kLatentExpertNames =
    WithMtp(WithLatentAttention(kCorrectedRouterNames), &kLatentExpertNextNames);

constexpr TensorNames WithEmbeddingNorm() {
  TensorNames names = kPlainFusedNames;
  names.embedding_norm = "token_embd_norm";
  return names;
}
inline constexpr TensorNames kEmbeddingNormNames = WithEmbeddingNorm();

constexpr TensorNames WithTwoParallelNorms() {
  TensorNames names = kPlainFusedNames;
  names.parallel_attention_norm = "blk.{}.attn_norm_2";
  names.parallel_ffn_norm = "blk.{}.attn_norm";
  return names;
}
inline constexpr TensorNames kTwoParallelNormNames = WithTwoParallelNorms();

inline constexpr TensorNames kScanNames = {
    .prefix = "",
    .embedding = "token_embd",
    .final_norm = "output_norm",
    .head = "output",
    .attention_norm = "blk.{}.attn_norm",
    .mixer_in = "blk.{}.ssm_in",
    .conv = "blk.{}.ssm_conv1d",
    .scan_inputs = "blk.{}.ssm_x",
    .scan_steps = "blk.{}.ssm_dt",
    .scan_rates = "blk.{}.ssm_a",
    .scan_skip = "blk.{}.ssm_d",
    .mixer_out = "blk.{}.ssm_out",
};

constexpr TensorNames WithShortConvolutions() {
  TensorNames names = kNames;
  names.final_norm = "token_embd_norm";
  names.mixer_in = "blk.{}.shortconv.in_proj";
  names.conv = "blk.{}.shortconv.conv";
  names.mixer_out = "blk.{}.shortconv.out_proj";
  return names;
}
inline constexpr TensorNames kShortConvolutionNames = WithShortConvolutions();

inline constexpr TensorNames kCrossNames = {
    .prefix = "",
    .embedding = "token_embd",
    .final_norm = "dec.output_norm",
    .head = "output",
    .attention_norm = "dec.blk.{}.attn_norm",
    .q = "dec.blk.{}.attn_q",
    .k = "dec.blk.{}.attn_k",
    .v = "dec.blk.{}.attn_v",
    .attention_out = "dec.blk.{}.attn_o",
    .ffn_norm = "dec.blk.{}.ffn_norm",
    .gate = "dec.blk.{}.ffn_gate",
    .up = "dec.blk.{}.ffn_up",
    .down = "dec.blk.{}.ffn_down",
    .relative_position_bias = "dec.blk.0.attn_rel_b",
    .cross_norm = "dec.blk.{}.cross_attn_norm",
    .cross_q = "dec.blk.{}.cross_attn_q",
    .cross_k = "dec.blk.{}.cross_attn_k",
    .cross_v = "dec.blk.{}.cross_attn_v",
    .cross_out = "dec.blk.{}.cross_attn_o",
};

inline constexpr TensorNames kEncoderNames = {
    .prefix = "",
    .embedding = "token_embd",
    .final_norm = "enc.output_norm",
    .head = "output",
    .attention_norm = "enc.blk.{}.attn_norm",
    .q = "enc.blk.{}.attn_q",
    .k = "enc.blk.{}.attn_k",
    .v = "enc.blk.{}.attn_v",
    .attention_out = "enc.blk.{}.attn_o",
    .ffn_norm = "enc.blk.{}.ffn_norm",
    .gate = "enc.blk.{}.ffn_gate",
    .up = "enc.blk.{}.ffn_up",
    .down = "enc.blk.{}.ffn_down",
    .relative_position_bias = "enc.blk.0.attn_rel_b",
};

}  // namespace arn::convert::gguf
