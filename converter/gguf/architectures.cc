#include "converter/gguf/architectures.h"

namespace arn::convert {
namespace {

constexpr TensorNames kNames = {
    .prefix = "",
    .embedding = "token_embd",
    .final_norm = "output_norm",
    .head = "output",
    .attention_norm = "blk.{}.attn_norm",
    .q = "blk.{}.attn_q",
    .k = "blk.{}.attn_k",
    .v = "blk.{}.attn_v",
    .q_norm = "blk.{}.attn_q_norm",
    .k_norm = "blk.{}.attn_k_norm",
    .attention_out = "blk.{}.attn_output",
    .ffn_norm = "blk.{}.ffn_norm",
    .gate = "blk.{}.ffn_gate",
    .up = "blk.{}.ffn_up",
    .down = "blk.{}.ffn_down",
};

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
constexpr TensorNames kFusedNames = WithFusedProjections();

constexpr TensorNames WithPlainFeedForward(TensorNames names) {
  names.gate = nullptr;
  return names;
}
constexpr TensorNames kPlainNames = WithPlainFeedForward(kNames);
constexpr TensorNames kPlainFusedNames = WithPlainFeedForward(WithFusedQkv());

constexpr TensorNames WithPositions() {
  TensorNames names = kPlainFusedNames;
  names.positions = "position_embd";
  return names;
}
constexpr TensorNames kPositionNames = WithPositions();

constexpr TensorNames WithSandwichNorms() {
  TensorNames names = kNames;
  names.attention_post_norm = "blk.{}.post_attention_norm";
  names.ffn_post_norm = "blk.{}.post_ffw_norm";
  return names;
}
constexpr TensorNames kSandwichNames = WithSandwichNorms();

constexpr TensorNames WithPostNorms() {
  TensorNames names = WithSandwichNorms();
  names.attention_norm = names.ffn_norm = nullptr;
  return names;
}
constexpr TensorNames kPostNormNames = WithPostNorms();

// A layer's experts lie in one tensor of the file; each is named here by its number.
constexpr TensorNames WithExperts() {
  TensorNames names = kNames;
  names.router = "blk.{}.ffn_gate_inp";
  names.expert_gate = "blk.{}.ffn_gate_exps.{}";
  names.expert_up = "blk.{}.ffn_up_exps.{}";
  names.expert_down = "blk.{}.ffn_down_exps.{}";
  return names;
}
constexpr TensorNames kExpertNames = WithExperts();

constexpr GgufArchitecture kArchitectures[] = {
    {.name = "llama",
     .architecture = "LlamaForCausalLM",
     .names = &kNames,
     .rotates_neighbours = true},
    {.name = "llama",
     .architecture = "MixtralForCausalLM",
     .names = &kExpertNames,
     .rotates_neighbours = true},
    {.name = "qwen2", .architecture = "Qwen2ForCausalLM", .names = &kNames},
    {.name = "qwen3", .architecture = "Qwen3ForCausalLM", .names = &kNames},
    {.name = "qwen3moe", .architecture = "Qwen3MoeForCausalLM", .names = &kExpertNames},
    {.name = "gemma2",
     .architecture = "Gemma2ForCausalLM",
     .names = &kSandwichNames,
     .layers_of_largest = 46},
    {.name = "gemma3",
     .architecture = "Gemma3ForCausalLM",
     .names = &kSandwichNames,
     .layers_of_largest = 62},
    {.name = "phi3", .architecture = "Phi3ForCausalLM", .names = &kFusedNames},
    {.name = "smollm3",
     .architecture = "SmolLM3ForCausalLM",
     .names = &kNames,
     .rotates_neighbours = true},
    {.name = "granite",
     .architecture = "GraniteForCausalLM",
     .names = &kNames,
     .rotates_neighbours = true},
    {.name = "olmo2", .architecture = "Olmo2ForCausalLM", .names = &kPostNormNames},
    {.name = "starcoder2", .architecture = "Starcoder2ForCausalLM", .names = &kPlainNames},
    {.name = "gptneox", .architecture = "GPTNeoXForCausalLM", .names = &kPlainFusedNames},
    {.name = "gpt2", .architecture = "GPT2LMHeadModel", .names = &kPositionNames},
};

}  // namespace

Span<const GgufArchitecture> GgufArchitectures() { return kArchitectures; }

const GgufArchitecture* FindGgufArchitecture(const std::string& name, bool has_experts) {
  const GgufArchitecture* found = nullptr;
  for (const GgufArchitecture& row : kArchitectures) {
    if (name != row.name) continue;
    if (found == nullptr || has_experts == (row.names->router != nullptr)) found = &row;
  }
  return found;
}

}  // namespace arn::convert
