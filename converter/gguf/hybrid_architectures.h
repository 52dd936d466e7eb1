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
inline constexpr TensorNames kGgufDeltaRuleNames = GgufDeltaRuleNames();
inline constexpr TensorNames kGgufDeltaRuleExpertNames = WithStackedExperts(kGgufDeltaRuleNames);

// Time steps and betas in one matrix, by key head.
constexpr TensorNames WithFusedSteps(TensorNames names) {
  names.mixer_b = names.mixer_a = nullptr;
  names.mixer_ba = "blk.{}.ssm_ba";
  return names;
}
inline constexpr TensorNames kGgufFusedDeltaRuleExpertNames =
    WithFusedSteps(kGgufDeltaRuleExpertNames);

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
};

}  // namespace arn::convert
