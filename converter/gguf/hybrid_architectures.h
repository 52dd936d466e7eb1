// Rows of architectures whose layers differ, for architectures.cc: layers with a state, experts in
// some layers, per-layer sizes.
#pragma once

#include "converter/gguf/architectures.h"
#include "converter/gguf/gguf_names.h"

namespace arn::convert {

constexpr TensorNames WithStackedExperts(TensorNames names) {
  names.router = "blk.{}.ffn_gate_inp";
  names.expert_gate = "blk.{}.ffn_gate_exps.{}";
  names.expert_up = "blk.{}.ffn_up_exps.{}";
  names.expert_down = "blk.{}.ffn_down_exps.{}";
  names.router_correction = "blk.{}.exp_probs_b.bias";
  names.shared_gate = "blk.{}.ffn_gate_shexp";
  names.shared_up = "blk.{}.ffn_up_shexp";
  names.shared_down = "blk.{}.ffn_down_shexp";
  names.shared_gate_score = "blk.{}.ffn_gate_inp_shexp";
  return names;
}

constexpr TensorNames GgufShortConvolutionExpertNames() {
  TensorNames names = WithStackedExperts(kGgufNames);
  names.final_norm = "token_embd_norm";
  names.mixer_in = "blk.{}.shortconv.in_proj";
  names.conv = "blk.{}.shortconv.conv";
  names.mixer_out = "blk.{}.shortconv.out_proj";
  return names;
}
inline constexpr TensorNames kGgufShortConvolutionExpertNames = GgufShortConvolutionExpertNames();

constexpr TensorNames GgufDeltaRuleNames() {
  TensorNames names = kGgufNames;
  names.ffn_norm = "blk.{}.post_attention_norm";
  names.mixer_qkv = "blk.{}.attn_qkv";
  names.mixer_z = "blk.{}.attn_gate";
  names.mixer_b = "blk.{}.ssm_beta";
  names.mixer_a = "blk.{}.ssm_alpha";
  names.conv = "blk.{}.ssm_conv1d";
  names.scan_rates = "blk.{}.ssm_a";
  names.time_step_bias = "blk.{}.ssm_dt.bias";
  names.mixer_norm = "blk.{}.ssm_norm";
  names.mixer_out = "blk.{}.ssm_out";
  return names;
}

// Time steps and betas in one matrix, by key head.
constexpr TensorNames WithFusedSteps(TensorNames names) {
  names.mixer_b = names.mixer_a = nullptr;
  names.mixer_ba = "blk.{}.ssm_ba";
  return names;
}

// A multi-token prediction head as the layer behind the last.
constexpr TensorNames AsPredictor(TensorNames names) {
  names.mtp_prefix = "blk.{}.";
  names.mtp_embedding_norm = "blk.{}.nextn.enorm";
  names.mtp_hidden_norm = "blk.{}.nextn.hnorm";
  names.mtp_fc = "blk.{}.nextn.eh_proj";
  names.mtp_goes_on_normed = true;
  names.mtp_embedding_copy = "blk.{}.nextn.embed_tokens";
  names.mtp_head_copy = "blk.{}.nextn.shared_head_head";
  names.final_norm = "blk.{}.nextn.shared_head_norm";
  return names;
}
inline constexpr TensorNames kGgufPredictorNames = AsPredictor(GgufDeltaRuleNames());
inline constexpr TensorNames kGgufPredictorExpertNames =
    AsPredictor(WithStackedExperts(GgufDeltaRuleNames()));

constexpr TensorNames WithPredictor(TensorNames names, const TensorNames* predictor) {
  names.mtp = predictor;
  return names;
}
inline constexpr TensorNames kGgufDeltaRuleNames =
    WithPredictor(GgufDeltaRuleNames(), &kGgufPredictorNames);
inline constexpr TensorNames kGgufDeltaRuleExpertNames =
    WithPredictor(WithStackedExperts(GgufDeltaRuleNames()), &kGgufPredictorExpertNames);
inline constexpr TensorNames kGgufFusedDeltaRuleExpertNames =
    WithFusedSteps(kGgufDeltaRuleExpertNames);

constexpr TensorNames GgufMamba2Names() {
  TensorNames names = kGgufNames;
  names.mixer_in = "blk.{}.ssm_in";
  names.conv = "blk.{}.ssm_conv1d";
  names.scan_rates = "blk.{}.ssm_a";
  names.scan_skip = "blk.{}.ssm_d";
  names.time_step_bias = "blk.{}.ssm_dt.bias";
  names.mixer_norm = "blk.{}.ssm_norm";
  names.mixer_out = "blk.{}.ssm_out";
  return names;
}
inline constexpr TensorNames kGgufMamba2Names = GgufMamba2Names();
inline constexpr TensorNames kGgufMamba2ExpertNames = WithStackedExperts(kGgufMamba2Names);

constexpr TensorNames GgufScanLayerNames() {
  TensorNames names = WithStackedExperts(kGgufNames);
  names.mixer_in = "blk.{}.ssm_in";
  names.conv = "blk.{}.ssm_conv1d";
  names.scan_inputs = "blk.{}.ssm_x";
  names.scan_steps = "blk.{}.ssm_dt";
  names.scan_rates = "blk.{}.ssm_a";
  names.scan_skip = "blk.{}.ssm_d";
  names.scan_low_norm = "blk.{}.ssm_dt_norm";
  names.scan_b_norm = "blk.{}.ssm_b_norm";
  names.scan_c_norm = "blk.{}.ssm_c_norm";
  names.mixer_out = "blk.{}.ssm_out";
  return names;
}
inline constexpr TensorNames kGgufScanLayerNames = GgufScanLayerNames();

// Layers of one block each, without gates.
constexpr TensorNames AsSingleBlocks(TensorNames names) {
  names.ffn_norm = names.attention_norm;
  names.gate = names.expert_gate = names.shared_gate = nullptr;
  return names;
}
inline constexpr TensorNames kGgufSingleBlockNames = AsSingleBlocks(kGgufMamba2Names);
inline constexpr TensorNames kGgufSingleBlockExpertNames = AsSingleBlocks(kGgufMamba2ExpertNames);

constexpr TensorNames GgufPerLayerNames() {
  TensorNames names = kGgufNames;
  names.attention_post_norm = "blk.{}.post_attention_norm";
  names.ffn_post_norm = "blk.{}.post_ffw_norm";
  names.per_layer_embedding = "per_layer_token_embd";
  names.per_layer_projection = "per_layer_model_proj";
  names.per_layer_projection_norm = "per_layer_proj_norm";
  names.per_layer_gate = "blk.{}.inp_gate";
  names.per_layer_out = "blk.{}.proj";
  names.per_layer_norm = "blk.{}.post_norm";
  names.output_scale = "blk.{}.layer_output_scale.weight";
  return names;
}
inline constexpr TensorNames kGgufPerLayerNames = GgufPerLayerNames();

// Gate and up of all experts of a layer in one tensor.
constexpr TensorNames GgufPerLayerExpertNames() {
  TensorNames names = kGgufPerLayerNames;
  names.router = "blk.{}.ffn_gate_inp";
  names.router_norm = "blk.{}.ffn_gate_inp.scale";
  names.stacked_gate_up = "blk.{}.ffn_gate_up_exps.weight";
  names.stacked_down = "blk.{}.ffn_down_exps.weight";
  names.is_stacked_by_rows = true;
  names.expert_factors = "blk.{}.ffn_down_exps.scale";
  names.experts_norm = "blk.{}.pre_ffw_norm_2";
  names.experts_post_norm = "blk.{}.post_ffw_norm_2";
  names.shared_post_norm = "blk.{}.post_ffw_norm_1";
  names.shared_gate = names.gate;
  names.shared_up = names.up;
  names.shared_down = names.down;
  return names;
}
inline constexpr TensorNames kGgufPerLayerExpertNames = GgufPerLayerExpertNames();

constexpr TensorNames GgufStreamNames() {
  TensorNames names = kGgufPerLayerNames;
  names.output_scale = nullptr;
  names.stream_in = "altup_proj.{}";
  names.stream_out = "altup_unembd_proj.{}";
  names.stream_router_norm = "blk.{}.altup_router_norm";
  names.stream_router = "blk.{}.altup_router";
  names.stream_predict = "blk.{}.altup_predict_coef";
  names.stream_correct = "blk.{}.altup_correct_coef";
  names.stream_scale = "blk.{}.altup_correct_scale.weight";
  names.laurel_low = "blk.{}.laurel_l";
  names.laurel_out = "blk.{}.laurel_r";
  names.laurel_norm = "blk.{}.laurel_post_norm";
  return names;
}
inline constexpr TensorNames kGgufStreamNames = GgufStreamNames();

inline constexpr GgufSize kLfm2MoeSizes[] = {{24, 2048}, {40, 2048}};
inline constexpr GgufSize kQwen3NextSizes[] = {{48, 2048}, {49, 2048}};

inline constexpr GgufArchitecture kHybridArchitectures[] = {
    {.name = "lfm2moe",
     .architecture = "Lfm2MoeForCausalLM",
     .names = &kGgufShortConvolutionExpertNames,
     .unsaid = {"with the weights of a token's experts divided by their sum, as in the published "
                "sizes",
                kLfm2MoeSizes},
     .is_hybrid = true},
    {.name = "qwen35",
     .architecture = "Qwen3_5ForCausalLM",
     .names = &kGgufDeltaRuleNames,
     .is_hybrid = true,
     .value_heads_in_turn = true},
    {.name = "qwen35moe",
     .architecture = "Qwen3_5MoeForCausalLM",
     .names = &kGgufDeltaRuleExpertNames,
     .is_hybrid = true,
     .value_heads_in_turn = true},
    {.name = "qwen3next",
     .architecture = "Qwen3NextForCausalLM",
     .names = &kGgufFusedDeltaRuleExpertNames,
     .unsaid = {"with the weights of a token's experts divided by their sum, as in the published "
                "size",
                kQwen3NextSizes},
     .is_hybrid = true},
    {.name = "mamba2",
     .architecture = "Mamba2ForCausalLM",
     .names = &kGgufMamba2Names,
     .is_hybrid = true},
    {.name = "granitehybrid",
     .architecture = "GraniteMoeHybridForCausalLM",
     .names = &kGgufMamba2Names,
     .rotates_neighbours = true,
     .is_hybrid = true},
    {.name = "granitehybrid",
     .architecture = "GraniteMoeHybridForCausalLM",
     .names = &kGgufMamba2ExpertNames,
     .rotates_neighbours = true,
     .is_hybrid = true},
    {.name = "falcon-h1",
     .architecture = "FalconH1ForCausalLM",
     .names = &kGgufMamba2Names,
     .is_hybrid = true},
    {.name = "nemotron_h",
     .architecture = "NemotronHForCausalLM",
     .names = &kGgufSingleBlockNames,
     .rotates_neighbours = true,
     .is_hybrid = true},
    {.name = "nemotron_h_moe",
     .architecture = "NemotronHForCausalLM",
     .names = &kGgufSingleBlockExpertNames,
     .rotates_neighbours = true,
     .is_hybrid = true},
    {.name = "jamba",
     .architecture = "JambaForCausalLM",
     .names = &kGgufScanLayerNames,
     .is_hybrid = true},
    {.name = "gemma3n",
     .architecture = "Gemma3nForCausalLM",
     .names = &kGgufStreamNames,
     .is_hybrid = true},
    {.name = "gemma4",
     .architecture = "Gemma4ForCausalLM",
     .names = &kGgufPerLayerNames,
     .is_hybrid = true,
     .has_rotated_part = true},
    {.name = "gemma4",
     .architecture = "Gemma4ForCausalLM",
     .names = &kGgufPerLayerExpertNames,
     .is_hybrid = true,
     .has_rotated_part = true},
};

}  // namespace arn::convert
