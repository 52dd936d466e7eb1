#include "converter/gguf/architectures.h"

#include <algorithm>
#include <array>

#include "converter/gguf/decoder_architectures.h"
#include "converter/gguf/decoder_names.h"
#include "converter/gguf/encoder_architectures.h"
#include "converter/gguf/hybrid_architectures.h"

namespace arn::convert {
namespace {

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
constexpr GgufSize kT5Sizes[] = {{6, 512}, {8, 512}, {12, 768}, {24, 1024}, {24, 2048}, {24, 4096}};

constexpr GgufArchitecture kArchitectures[] = {
    {.name = "llama",
     .architecture = "LlamaForCausalLM",
     .names = &gguf::kNames,
     .unsaid =
         {"without a window, which is wrong for Mistral 7B v0.1 and similar models: --window 4096",
          kWithoutWindow},
     .rotates_neighbours = true},
    {.name = "llama",
     .architecture = "MistralForCausalLM",
     .names = &gguf::kNames,
     .has_window = true,
     .rotates_neighbours = true},
    {.name = "llama",
     .architecture = "MixtralForCausalLM",
     .names = &gguf::kExpertNames,
     .rotates_neighbours = true},
    {.name = "gemma", .architecture = "GemmaForCausalLM", .names = &gguf::kNames},
    {.name = "qwen2", .architecture = "Qwen2ForCausalLM", .names = &gguf::kNames},
    {.name = "qwen3", .architecture = "Qwen3ForCausalLM", .names = &gguf::kNames},
    {.name = "qwen3moe", .architecture = "Qwen3MoeForCausalLM", .names = &gguf::kExpertNames},
    {.name = "gemma2",
     .architecture = "Gemma2ForCausalLM",
     .names = &gguf::kSandwichNames,
     .unsaid = {"with windows in every second layer and scores scaled by the square root of "
                "head_dim, as in the published sizes",
                kGemma2Sizes},
     .layers_of_largest = 46},
    {.name = "gemma3",
     .architecture = "Gemma3ForCausalLM",
     .names = &gguf::kSandwichNames,
     .unsaid = {"with windows in all but every sixth layer and scores scaled by the square root of "
                "head_dim, as in the published sizes",
                kGemma3Sizes},
     .layers_of_largest = 62},
    {.name = "phi3", .architecture = "Phi3ForCausalLM", .names = &gguf::kFusedNames},
    {.name = "smollm3",
     .architecture = "SmolLM3ForCausalLM",
     .names = &gguf::kNames,
     .unsaid = {"with rope in all but every fourth layer, as in the published size", kSmolLm3Sizes},
     .rotates_neighbours = true},
    {.name = "granite",
     .architecture = "GraniteForCausalLM",
     .names = &gguf::kNames,
     .rotates_neighbours = true},
    {.name = "olmo2", .architecture = "Olmo2ForCausalLM", .names = &gguf::kPostNormNames},
    {.name = "starcoder2",
     .architecture = "Starcoder2ForCausalLM",
     .names = &gguf::kPlainNames,
     .unsaid = {"without a window; the published sizes have one: --window 4096", {}}},
    {.name = "gptneox", .architecture = "GPTNeoXForCausalLM", .names = &gguf::kPlainFusedNames},
    {.name = "gpt2", .architecture = "GPT2LMHeadModel", .names = &gguf::kPositionNames},
    {.name = "gpt-oss",
     .architecture = "GptOssForCausalLM",
     .names = &gguf::kSinkNames,
     .unsaid = {"with windows in every second layer, starting with the first, and SwiGLU limited "
                "to 7, as in the published sizes",
                kGptOssSizes}},
    {.name = "llama4",
     .architecture = "Llama4ForCausalLM",
     .names = &gguf::kSharedExpertNames,
     .unsaid = {"with chunks of 8192, rope in all but every fourth layer, and the temperature of "
                "the published sizes",
                kLlama4Sizes},
     .rotates_neighbours = true},
    {.name = "lfm2", .architecture = "Lfm2ForCausalLM", .names = &gguf::kShortConvolutionNames},
    {.name = "mamba", .architecture = "MambaForCausalLM", .names = &gguf::kScanNames},
    {.name = "t5",
     .architecture = "T5ForConditionalGeneration",
     .names = &gguf::kCrossNames,
     .encoder_names = &gguf::kEncoderNames,
     .unsaid = {"with a relative position bias up to distance 128, as in the published sizes",
                kT5Sizes}},
};

// Joins the lists of rows.
template <size_t... kSizes>
constexpr auto Joined(const GgufArchitecture (&... lists)[kSizes]) {
  std::array<GgufArchitecture, (kSizes + ...)> all = {};
  size_t n = 0;
  const auto append = [&](const GgufArchitecture* rows, size_t n_rows) {
    for (size_t i = 0; i < n_rows; ++i) all[n++] = rows[i];
  };
  (append(lists, kSizes), ...);
  return all;
}
constexpr auto kAllArchitectures =
    Joined(kArchitectures, kDecoderArchitectures, kHybridArchitectures, kEncoderArchitectures);

}  // namespace

Span<const GgufArchitecture> GgufArchitectures() {
  return {kAllArchitectures.data(), kAllArchitectures.size()};
}

const GgufArchitecture* FindGgufArchitecture(const std::string& name, const GgufTraits& traits) {
  const GgufArchitecture* found = nullptr;
  int most = -1;
  for (const GgufArchitecture& row : kAllArchitectures) {
    if (name != row.name) continue;
    if (row.only_layers != 0 && row.only_layers != traits.layers) continue;
    const TensorNames& names = *row.names;
    const int matches = 8 * (traits.has_experts == (names.router != nullptr)) +
                        (traits.has_window == row.has_window) +
                        (traits.stores_window == row.stores_window) +
                        (traits.has_temperature == row.has_temperature) +
                        (traits.corrects_router == (names.router_correction != nullptr)) +
                        (traits.has_token_types == (names.token_types != nullptr)) +
                        (traits.has_shared_expert == (names.shared_down != nullptr)) +
                        (traits.fuses_qkv == (names.qkv != nullptr));
    if (matches > most) found = &row;
    most = std::max(most, matches);
  }
  return found;
}

}  // namespace arn::convert
