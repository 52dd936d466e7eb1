#include "converter/gguf/architectures.h"

#include <algorithm>

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

constexpr TensorNames WithFusedFeedForward() {
  TensorNames names = kNames;
  names.gate = names.up = nullptr;
  names.gate_up = "blk.{}.ffn_up";
  return names;
}
constexpr TensorNames kFusedFeedForwardNames = WithFusedFeedForward();

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

constexpr TensorNames WithFusedSandwich() {
  TensorNames names = WithSandwichNorms();
  names.gate = names.up = nullptr;
  names.gate_up = "blk.{}.ffn_up";
  return names;
}
constexpr TensorNames kFusedSandwichNames = WithFusedSandwich();

// The norm before the feed-forward block is named after its place.
constexpr TensorNames WithRenamedFfnNorm(TensorNames names) {
  names.ffn_norm = "blk.{}.post_attention_norm";
  return names;
}
constexpr TensorNames kRenamedFfnNormNames = WithRenamedFfnNorm(kNames);

// The file stores a layer's experts in one tensor; these names refer to each expert by number.
constexpr TensorNames WithExperts() {
  TensorNames names = kNames;
  names.router = "blk.{}.ffn_gate_inp";
  names.expert_gate = "blk.{}.ffn_gate_exps.{}";
  names.expert_up = "blk.{}.ffn_up_exps.{}";
  names.expert_down = "blk.{}.ffn_down_exps.{}";
  return names;
}
constexpr TensorNames kExpertNames = WithExperts();

constexpr TensorNames WithSinks() {
  TensorNames names = WithExperts();
  names.ffn_norm = "blk.{}.post_attention_norm";
  names.sinks = "blk.{}.attn_sinks.weight";
  return names;
}
constexpr TensorNames kSinkNames = WithSinks();

constexpr TensorNames WithSharedExpert() {
  TensorNames names = WithExperts();
  names.q_norm = names.k_norm = nullptr;
  names.shared_gate = "blk.{}.ffn_gate_shexp";
  names.shared_up = "blk.{}.ffn_up_shexp";
  names.shared_down = "blk.{}.ffn_down_shexp";
  return names;
}
constexpr TensorNames kSharedExpertNames = WithSharedExpert();

constexpr TensorNames WithNormsOfHeads(TensorNames names) {
  names.q_norm = kNames.q_norm;
  names.k_norm = kNames.k_norm;
  return names;
}
constexpr TensorNames kNormedSharedExpertNames = WithNormsOfHeads(kSharedExpertNames);

constexpr TensorNames WithSharedExpertGate() {
  TensorNames names = WithSharedExpert();
  names.shared_gate_score = "blk.{}.ffn_gate_inp_shexp";
  return names;
}
constexpr TensorNames kGatedSharedExpertNames = WithSharedExpertGate();

constexpr TensorNames WithRouterCorrection() {
  TensorNames names = WithNormsOfHeads(WithSharedExpert());
  names.router_correction = "blk.{}.exp_probs_b.bias";
  return names;
}
constexpr TensorNames kCorrectedRouterNames = WithRouterCorrection();

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

constexpr TensorNames kRenamedCorrectedNextNames =
    AsNextLayer(WithRenamedFfnNorm(kCorrectedRouterNames));
constexpr TensorNames kRenamedCorrectedNames =
    WithMtp(WithRenamedFfnNorm(kCorrectedRouterNames), &kRenamedCorrectedNextNames);

constexpr TensorNames WithGatedAttention() {
  TensorNames names = WithRouterCorrection();
  names.attention_gate = "blk.{}.attn_gate";
  names.attention_post_norm = "blk.{}.post_attention_norm";
  names.ffn_post_norm = "blk.{}.post_ffw_norm";
  return names;
}
constexpr TensorNames kGatedAttentionNames = WithGatedAttention();

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
constexpr TensorNames kLatentNames = WithLatentAttention(kNames);
constexpr TensorNames kLatentSharedExpertNames = WithLatentAttention(kSharedExpertNames);
constexpr TensorNames kLatentExpertNextNames =
    AsNextLayer(WithLatentAttention(kCorrectedRouterNames));
constexpr TensorNames kLatentExpertNames =
    WithMtp(WithLatentAttention(kCorrectedRouterNames), &kLatentExpertNextNames);

constexpr TensorNames WithEmbeddingNorm() {
  TensorNames names = kPlainFusedNames;
  names.embedding_norm = "token_embd_norm";
  return names;
}
constexpr TensorNames kEmbeddingNormNames = WithEmbeddingNorm();

constexpr TensorNames WithTwoParallelNorms() {
  TensorNames names = kPlainFusedNames;
  names.parallel_attention_norm = "blk.{}.attn_norm_2";
  names.parallel_ffn_norm = "blk.{}.attn_norm";
  return names;
}
constexpr TensorNames kTwoParallelNormNames = WithTwoParallelNorms();

constexpr TensorNames kScanNames = {
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
constexpr TensorNames kShortConvolutionNames = WithShortConvolutions();

constexpr TensorNames kCrossNames = {
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

constexpr TensorNames kEncoderNames = {
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

// Llama, SmolLM2 and TinyLlama. Leaves out the size of Llama 2 7B: a Mistral with a window has the
// same size and vocabulary.
constexpr GgufSize kWithoutWindow[] = {
    {30, 576},  {32, 960},  {24, 2048}, {22, 2048},         {16, 2048},
    {28, 3072}, {40, 5120}, {80, 8192}, {32, 4096, 128256},
};
constexpr GgufSize kGemma2Sizes[] = {{26, 2304}, {42, 3584}, {46, 4608}};
constexpr GgufSize kGemma3Sizes[] = {{18, 640}, {26, 1152}, {34, 2560}, {48, 3840}, {62, 5376}};
constexpr GgufSize kSmolLm3Sizes[] = {{36, 2048}};
constexpr GgufSize kGptOssSizes[] = {{24, 2880}, {36, 2880}};
constexpr GgufSize kLlama4Sizes[] = {{48, 5120}};
constexpr GgufSize kCohere2Sizes[] = {{32, 4096}, {64, 12288}};
constexpr GgufSize kOlmoeSizes[] = {{16, 2048}};
constexpr GgufSize kQwen2MoeSizes[] = {{24, 2048}, {28, 3584}};
constexpr GgufSize kT5Sizes[] = {{6, 512}, {8, 512}, {12, 768}, {24, 1024}, {24, 2048}, {24, 4096}};

constexpr GgufArchitecture kArchitectures[] = {
    {.name = "llama",
     .architecture = "LlamaForCausalLM",
     .names = &kNames,
     .unsaid =
         {"without a window, which is wrong for Mistral 7B v0.1 and similar models: --window 4096",
          kWithoutWindow},
     .rotates_neighbours = true},
    {.name = "llama",
     .architecture = "MistralForCausalLM",
     .names = &kNames,
     .has_window = true,
     .rotates_neighbours = true},
    {.name = "llama",
     .architecture = "MixtralForCausalLM",
     .names = &kExpertNames,
     .rotates_neighbours = true},
    {.name = "gemma", .architecture = "GemmaForCausalLM", .names = &kNames},
    {.name = "qwen2", .architecture = "Qwen2ForCausalLM", .names = &kNames},
    {.name = "qwen3", .architecture = "Qwen3ForCausalLM", .names = &kNames},
    {.name = "qwen3moe", .architecture = "Qwen3MoeForCausalLM", .names = &kExpertNames},
    {.name = "gemma2",
     .architecture = "Gemma2ForCausalLM",
     .names = &kSandwichNames,
     .unsaid = {"with windows in every second layer and scores scaled by the square root of "
                "head_dim, as in the published sizes",
                kGemma2Sizes},
     .layers_of_largest = 46},
    {.name = "gemma3",
     .architecture = "Gemma3ForCausalLM",
     .names = &kSandwichNames,
     .unsaid = {"with windows in all but every sixth layer and scores scaled by the square root of "
                "head_dim, as in the published sizes",
                kGemma3Sizes},
     .layers_of_largest = 62},
    {.name = "phi3", .architecture = "Phi3ForCausalLM", .names = &kFusedNames},
    {.name = "smollm3",
     .architecture = "SmolLM3ForCausalLM",
     .names = &kNames,
     .unsaid = {"with rope in all but every fourth layer, as in the published size", kSmolLm3Sizes},
     .rotates_neighbours = true},
    {.name = "granite",
     .architecture = "GraniteForCausalLM",
     .names = &kNames,
     .rotates_neighbours = true},
    {.name = "olmo2", .architecture = "Olmo2ForCausalLM", .names = &kPostNormNames},
    {.name = "olmo2",
     .architecture = "Olmo3ForCausalLM",
     .names = &kPostNormNames,
     .stores_window = true},
    {.name = "exaone4", .architecture = "Exaone4ForCausalLM", .names = &kPostNormNames},
    {.name = "exaone-moe",
     .architecture = "ExaoneMoeForCausalLM",
     .names = &kCorrectedRouterNames,
     .norms_topk = false},
    {.name = "ernie4_5",
     .architecture = "Ernie4_5ForCausalLM",
     .names = &kNames,
     .rotates_neighbours = true},
    {.name = "ernie4_5-moe",
     .architecture = "Ernie4_5_MoeForCausalLM",
     .names = &kCorrectedRouterNames,
     .rotates_neighbours = true},
    {.name = "hunyuan-dense", .architecture = "HunYuanDenseV1ForCausalLM", .names = &kNames},
    {.name = "hunyuan-moe",
     .architecture = "HunYuanMoEV1ForCausalLM",
     .names = &kNormedSharedExpertNames},
    {.name = "glm4",
     .architecture = "Glm4ForCausalLM",
     .names = &kFusedSandwichNames,
     .rotates_neighbours = true},
    {.name = "glm4moe",
     .architecture = "Glm4MoeForCausalLM",
     .names = &kRenamedCorrectedNames,
     .norms_topk = false},
    {.name = "command-r",
     .architecture = "CohereForCausalLM",
     .names = &kNames,
     .rotates_neighbours = true},
    {.name = "cohere2",
     .architecture = "Cohere2ForCausalLM",
     .names = &kNames,
     .unsaid = {"with windows in all but every fourth layer, as in the published sizes",
                kCohere2Sizes},
     .rotates_neighbours = true},
    {.name = "seed_oss", .architecture = "SeedOssForCausalLM", .names = &kRenamedFfnNormNames},
    {.name = "arcee",
     .architecture = "ArceeForCausalLM",
     .names = &kPlainNames,
     .rotates_neighbours = true},
    {.name = "olmoe",
     .architecture = "OlmoeForCausalLM",
     .names = &kExpertNames,
     .unsaid = {"with weights of experts that are not normalised, as in the published size",
                kOlmoeSizes},
     .norms_topk = false},
    {.name = "qwen2moe",
     .architecture = "Qwen2MoeForCausalLM",
     .names = &kGatedSharedExpertNames,
     .unsaid = {"with weights of experts that are not normalised, as in the published sizes",
                kQwen2MoeSizes},
     .norms_topk = false},
    {.name = "granitemoe",
     .architecture = "GraniteMoeForCausalLM",
     .names = &kExpertNames,
     .rotates_neighbours = true},
    {.name = "granitemoe",
     .architecture = "GraniteMoeSharedForCausalLM",
     .names = &kSharedExpertNames,
     .rotates_neighbours = true},
    {.name = "stablelm", .architecture = "StableLmForCausalLM", .names = &kNames},
    {.name = "phi2", .architecture = "PhiForCausalLM", .names = &kPlainNames},
    {.name = "phi2", .architecture = "PhiForCausalLM", .names = &kPlainFusedNames},
    {.name = "chatglm",
     .architecture = "GlmForCausalLM",
     .names = &kFusedFeedForwardNames,
     .rotates_neighbours = true},
    {.name = "chatglm",
     .architecture = "GlmForCausalLM",
     .names = &kFusedNames,
     .rotates_neighbours = true},
    {.name = "mistral3",
     .architecture = "MistralForCausalLM",
     .names = &kNames,
     .rotates_neighbours = true},
    {.name = "mistral3",
     .architecture = "Ministral3ForCausalLM",
     .names = &kNames,
     .has_temperature = true,
     .rotates_neighbours = true},
    {.name = "nemotron", .architecture = "NemotronForCausalLM", .names = &kPlainNames},
    {.name = "jais2", .architecture = "Jais2ForCausalLM", .names = &kPlainNames},
    {.name = "dots1",
     .architecture = "Dots1ForCausalLM",
     .names = &kCorrectedRouterNames,
     .norms_topk = false},
    {.name = "olmo",
     .architecture = "OlmoForCausalLM",
     .names = &kNames,
     .rotates_neighbours = true},
    {.name = "mpt", .architecture = "MptForCausalLM", .names = &kPlainFusedNames},
    {.name = "afmoe",
     .architecture = "AfmoeForCausalLM",
     .names = &kGatedAttentionNames,
     .unsaid = {"with windows in all but every fourth layer and embeddings scaled by the square "
                "root of the width, as in the published sizes",
                {}}},
    {.name = "bloom", .architecture = "BloomForCausalLM", .names = &kEmbeddingNormNames},
    {.name = "falcon", .architecture = "FalconForCausalLM", .names = &kTwoParallelNormNames},
    {.name = "starcoder", .architecture = "GPTBigCodeForCausalLM", .names = &kPositionNames},
    {.name = "deepseek2",
     .architecture = "DeepseekV2ForCausalLM",
     .names = &kLatentSharedExpertNames,
     .rotates_neighbours = true,
     .norms_topk = false},
    {.name = "deepseek2",
     .architecture = "Glm4MoeLiteForCausalLM",
     .names = &kLatentExpertNames,
     .rotates_neighbours = true,
     .norms_topk = false,
     .only_layers = 47},
    {.name = "deepseek2",
     .architecture = "DeepseekV3ForCausalLM",
     .names = &kLatentExpertNames,
     .rotates_neighbours = true,
     .norms_topk = false},
    {.name = "deepseek2",
     .architecture = "YoutuForCausalLM",
     .names = &kLatentNames,
     .rotates_neighbours = true},
    {.name = "starcoder2",
     .architecture = "Starcoder2ForCausalLM",
     .names = &kPlainNames,
     .unsaid = {"without a window; the published sizes have one: --window 4096", {}}},
    {.name = "gptneox", .architecture = "GPTNeoXForCausalLM", .names = &kPlainFusedNames},
    {.name = "gpt2", .architecture = "GPT2LMHeadModel", .names = &kPositionNames},
    {.name = "gpt-oss",
     .architecture = "GptOssForCausalLM",
     .names = &kSinkNames,
     .unsaid = {"with windows in every second layer, starting with the first, and SwiGLU limited "
                "to 7, as in the published sizes",
                kGptOssSizes}},
    {.name = "llama4",
     .architecture = "Llama4ForCausalLM",
     .names = &kSharedExpertNames,
     .unsaid = {"with chunks of 8192, rope in all but every fourth layer, and the temperature of "
                "the published sizes",
                kLlama4Sizes},
     .rotates_neighbours = true},
    {.name = "lfm2", .architecture = "Lfm2ForCausalLM", .names = &kShortConvolutionNames},
    {.name = "mamba", .architecture = "MambaForCausalLM", .names = &kScanNames},
    {.name = "t5",
     .architecture = "T5ForConditionalGeneration",
     .names = &kCrossNames,
     .encoder_names = &kEncoderNames,
     .unsaid = {"with a relative position bias up to distance 128, as in the published sizes",
                kT5Sizes}},
};

}  // namespace

Span<const GgufArchitecture> GgufArchitectures() { return kArchitectures; }

const GgufArchitecture* FindGgufArchitecture(const std::string& name, const GgufTraits& traits) {
  const GgufArchitecture* found = nullptr;
  int most = -1;
  for (const GgufArchitecture& row : kArchitectures) {
    if (name != row.name) continue;
    if (row.only_layers != 0 && row.only_layers != traits.layers) continue;
    const TensorNames& names = *row.names;
    const int matches = 8 * (traits.has_experts == (names.router != nullptr)) +
                        (traits.has_window == row.has_window) +
                        (traits.stores_window == row.stores_window) +
                        (traits.has_temperature == row.has_temperature) +
                        (traits.corrects_router == (names.router_correction != nullptr)) +
                        (traits.has_shared_expert == (names.shared_down != nullptr)) +
                        (traits.fuses_qkv == (names.qkv != nullptr));
    if (matches > most) found = &row;
    most = std::max(most, matches);
  }
  return found;
}

}  // namespace arn::convert
