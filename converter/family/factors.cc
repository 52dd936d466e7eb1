#include "converter/family/factors.h"

#include <cmath>
#include <vector>

#include "converter/base/error.h"
#include "nlohmann/json.hpp"

namespace arn::convert {
namespace {

// Reads the factors of FalconH1Config.
void ReadMatrixFactors(ConfigReader* config, DecoderSpec* spec) {
  const auto factor = [&](const char* key) {
    return static_cast<float>(config->Number(key).value_or(1.0));
  };
  // Returns a list of `n` numbers; ones if it is absent.
  const auto list = [&](const char* key, size_t n) {
    std::vector<float> factors(n, 1.0f);
    const nlohmann::json* found = config->Find(key);
    if (found == nullptr) return factors;
    const std::string expected = Format("a list of %zu numbers", n);
    if (!found->is_array() || found->size() != n) config->FailKey(key, expected.c_str());
    for (size_t i = 0; i < n; ++i) {
      if (!(*found)[i].is_number()) config->FailKey(key, expected.c_str());
      factors[i] = (*found)[i].get<float>();
    }
    return factors;
  };
  const std::vector<float> mixer = list("ssm_multipliers", 5);
  const std::vector<float> feed_forward = list("mlp_multipliers", 2);
  spec->factors = {.attention_in = factor("attention_in_multiplier"),
                   .k = factor("key_multiplier"),
                   .attention_out = factor("attention_out_multiplier"),
                   .mixer_in = factor("ssm_in_multiplier"),
                   .z = mixer[0],
                   .x = mixer[1],
                   .b = mixer[2],
                   .c = mixer[3],
                   .time_steps = mixer[4],
                   .mixer_out = factor("ssm_out_multiplier"),
                   .gate = feed_forward[0],
                   .down = feed_forward[1]};
  spec->embedding_factor = factor("embedding_multiplier");
  spec->logits_factor = factor("lm_head_multiplier");
}

// Reads which row of the embedding is zeros.
void ReadZeroRow(ConfigReader* config, DecoderSpec* spec) {
  constexpr const char* kPadding = "pad_token_id";
  const std::optional<int64_t> id = config->Int(kPadding);
  if (!id) return;
  if (*id < 0 || *id >= spec->vocab) config->FailKey(kPadding, "a token of vocab_size, or null");
  spec->zero_row = static_cast<uint32_t>(*id);
}

// Reads the factors of MiniCPM3Config, which are among the family's needed_keys.
void ReadDepthFactors(const Family& family, ConfigReader* config, DecoderSpec* spec) {
  const auto factor = [&](const char* key) {
    const double value = config->Number(key).value_or(0);
    if (!(value > 0)) config->FailKey(key, "a positive number");
    return value;
  };
  const double n_layers = config->RequiredCount(family.keys.layers);
  spec->embedding_factor = static_cast<float>(factor("scale_emb"));
  spec->residual_factor = static_cast<float>(factor("scale_depth") / std::sqrt(n_layers));
  spec->logits_factor = static_cast<float>(factor("dim_model_base") / spec->hidden);
}

}  // namespace

float ReadSoftcap(const nlohmann::json& json, ConfigReader* config, const char* key,
                  double fallback) {
  const double cap = json.contains(key) ? config->Number(key).value_or(0) : fallback;
  if (cap < 0) config->FailKey(key, "a positive number or null");
  return static_cast<float>(cap);
}

void ReadFactors(const Family& family, ConfigReader* config, const nlohmann::json& json,
                 DecoderSpec* spec) {
  if (family.zeroes_padding_row) ReadZeroRow(config, spec);
  const char* scales_key = family.scales_embedding_key;
  if (scales_key != nullptr ? config->Bool(scales_key, family.scales_embedding)
                            : family.scales_embedding) {
    spec->embedding_factor = static_cast<float>(std::sqrt(static_cast<double>(spec->hidden)));
  }
  if (family.caps_logits) {
    spec->logits_softcap =
        ReadSoftcap(json, config, "final_logit_softcapping", family.default_logits_softcap);
  }
  // Later configs have a key of their own for the scaling of a tied head.
  if (family.scales_tied_head && config->Bool("scale_decoder_outputs", spec->tied)) {
    spec->logits_factor = static_cast<float>(1.0 / std::sqrt(static_cast<double>(spec->hidden)));
  }
  if (family.has_block_multipliers) ReadMatrixFactors(config, spec);
  if (family.default_logit_scale != 0) {
    constexpr const char* kScale = "logit_scale";
    if (config->IsNull(kScale)) config->FailKey(kScale, "a number");
    spec->logits_factor =
        static_cast<float>(config->Number(kScale).value_or(family.default_logit_scale));
  }
  if (family.has_depth_factors) ReadDepthFactors(family, config, spec);
  if (!family.has_multipliers) return;
  const auto factor = [&](const char* key) {
    const double value = config->Number(key).value_or(1.0);
    if (!(value > 0)) config->FailKey(key, "a positive number");
    return value;
  };
  spec->embedding_factor = static_cast<float>(factor("embedding_multiplier"));
  spec->residual_factor = static_cast<float>(factor("residual_multiplier"));
  const double scaling = factor("logits_scaling");
  spec->logits_factor = static_cast<float>(family.multiplies_logits ? scaling : 1.0 / scaling);
}

}  // namespace arn::convert
