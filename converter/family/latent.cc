#include "converter/family/latent.h"

#include <cmath>

#include "converter/base/error.h"
#include "nlohmann/json.hpp"

namespace arn::convert {
namespace {

constexpr uint32_t kMaxSize = 65536;

uint32_t Size(ConfigReader* config, const char* key, uint32_t fallback) {
  const uint32_t size = config->Count(key).value_or(fallback);
  if (size > kMaxSize) config->FailKey(key, "at most 65536");
  return size;
}

// Keys of a completed config, which follow from others.
void RequireEqual(ConfigReader* config, const char* key, uint32_t expected) {
  const auto value = config->Count(key);
  if (value && *value != expected) config->FailKey(key, std::to_string(expected).c_str());
}

// transformers' yarn_get_mscale(), squared: of the scaling's factor and mscale_all_dim.
double RopeScale(const ConfigReader& config, const nlohmann::json& json) {
  const auto object = [&](const char* key) {
    const auto at = json.find(key);
    return at != json.end() && at->is_object() && !at->empty() ? *at : nlohmann::json::object();
  };
  nlohmann::json rope = object("rope_scaling");
  if (rope.empty()) rope = object("rope_parameters");
  ConfigReader reader(rope, config.label() + ": rope parameters");
  const std::string type =
      reader.String("rope_type").value_or(reader.String("type").value_or("default"));
  const double all_dim = reader.Number("mscale_all_dim").value_or(0);
  if (type == "default" || all_dim == 0) return 1.0;
  const auto factor = reader.Number("factor");
  if (!factor) reader.FailKey("factor", "a number, because there is mscale_all_dim");
  const double mscale = *factor <= 1 ? 1.0 : 0.1 * all_dim * std::log(*factor) + 1.0;
  return mscale * mscale;
}

}  // namespace

void ReadLatent(const Family& family, ConfigReader* config, const nlohmann::json& json,
                LayerKindSpec* kind, bool* rotates_neighbours) {
  const LatentFamily& latent = *family.latent;
  if (kind->n_kv_heads != kind->n_heads) {
    config->FailKey("num_key_value_heads", Format("%u, as many as heads", kind->n_heads).c_str());
  }
  kind->latent_dim = Size(config, "kv_lora_rank", latent.kv_rank);
  if (!config->IsNull("q_lora_rank")) {
    kind->latent_query_rank = Size(config, "q_lora_rank", latent.query_rank);
  }
  kind->latent_key_dim = Size(config, "qk_nope_head_dim", latent.key_dim);
  const uint32_t value_dim = latent.value_dim != 0
                                 ? latent.value_dim
                                 : config->RequiredCount(family.keys.hidden) / kind->n_heads;
  kind->latent_value_dim = Size(config, "v_head_dim", value_dim);
  if (kind->latent_value_dim == 0) config->FailKey("v_head_dim", "a number above 0");
  const uint32_t rotary_dim = Size(config, "qk_rope_head_dim", latent.rotary_dim);
  if (rotary_dim % 2 != 0) config->FailKey("qk_rope_head_dim", "an even number");
  RequireEqual(config, "head_dim",
               latent.has_whole_heads ? rotary_dim + kind->latent_key_dim : rotary_dim);
  RequireEqual(config, "qk_head_dim", rotary_dim + kind->latent_key_dim);
  kind->n_kv_heads = 1;
  kind->head_dim = rotary_dim + kind->latent_dim;
  if (kind->head_dim > kMaxHeadDim) {
    config->FailKey("kv_lora_rank", Format("at most %u with qk_rope_head_dim %u",
                                           kMaxHeadDim - rotary_dim, rotary_dim)
                                        .c_str());
  }
  kind->latent_norm_epsilon = 1e-6f;  // the norms' own default
  double scale = 1.0 / std::sqrt(static_cast<double>(rotary_dim + kind->latent_key_dim));
  if (latent.scales_by_rope) scale *= RopeScale(*config, json);
  kind->attention_scale = static_cast<float>(scale);
  *rotates_neighbours = latent.pairs == LatentPairs::kNeighbours;
  if (latent.pairs != LatentPairs::kByKey) return;
  *rotates_neighbours = !config->IsNull("rope_interleave") && config->Bool("rope_interleave", true);
}

}  // namespace arn::convert
