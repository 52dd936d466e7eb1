#include "converter/gguf/gguf_rope_config.h"

#include <cmath>
#include <string>

#include "converter/gguf/gguf_keys.h"

namespace arn::convert {
namespace {

// Adds the keys of RoPE to a config.
class RopeConfigMaker {
 public:
  RopeConfigMaker(const GgufArchitecture& row, const Family& family, const GgufFacts& facts,
                  uint32_t head_dim, ConfigReader* metadata, nlohmann::json* config)
      : family_(family),
        facts_(facts),
        head_dim_(head_dim),
        metadata_(metadata),
        keys_(row.name, metadata),
        config_(config) {}

  void Make() {
    if (family_.rope == RopeRule::kNone) return;
    if (family_.rope == RopeRule::kByType) return AddByType();
    AddRotatedPart("rope.dimension_count", config_);
    (*config_)["rope_theta"] = keys_.Number("rope.freq_base").value_or(10000.0);
    if (family_.has_rope_alpha) AddAlpha();
    if (family_.rope == RopeRule::kByWindow) {
      (*config_)["rope_local_base_freq"] = keys_.Number("rope.freq_base_swa").value_or(10000.0);
    }
    nlohmann::json scaling = Scaling();
    if (family_.has_rope_temperature && scaling.value("rope_type", "") != "yarn") {
      keys_.Fail("rope.scaling.type", "yarn");
    }
    if (!scaling.empty()) {
      (*config_)["rope_scaling"] = std::move(scaling);
    } else if (family_.default_rope != nullptr) {
      // Keeps the defaults of the family's class away.
      (*config_)["rope_parameters"] = {{"rope_type", "default"},
                                       {"rope_theta", (*config_)["rope_theta"]}};
    }
  }

 private:
  // Adds which part of a head rotates: as many elements as the key says, or all.
  void AddRotatedPart(const char* key, nlohmann::json* object) {
    const uint32_t rotated = keys_.Count(key).value_or(head_dim_);
    if (family_.has_partial_rotary && rotated < head_dim_) {
      // transformers multiplies the quotient and truncates: adding 0.5 keeps the exact value.
      (*object)["partial_rotary_factor"] = (rotated + 0.5) / head_dim_;
    } else if (rotated != head_dim_) {
      keys_.Fail(key, std::to_string(head_dim_).c_str());
    } else if (family_.has_partial_rotary) {
      (*object)["partial_rotary_factor"] = 1.0;
    }
  }

  // Layers with a window have a base and a part of their own, without scaling.
  void AddByType() {
    nlohmann::json full = Scaling(), windowed = {{"rope_type", "default"}};
    if (full.empty()) full["rope_type"] = "default";
    full["rope_theta"] = keys_.Number("rope.freq_base").value_or(10000.0);
    windowed["rope_theta"] =
        keys_.Number("rope.freq_base_swa").value_or(full["rope_theta"].get<double>());
    AddRotatedPart("rope.dimension_count", &full);
    AddRotatedPart("rope.dimension_count_swa", &windowed);
    (*config_)["rope_parameters"] = {{"full_attention", std::move(full)},
                                     {"sliding_attention", std::move(windowed)}};
  }

  // Returns rope scaling in transformers' form.
  nlohmann::json Scaling() {
    std::string type = metadata_->String(keys_.Key("rope.scaling.type")).value_or("none");
    const std::optional<double> old_factor = keys_.Number("rope.scale_linear");
    std::optional<double> factor = keys_.Number("rope.scaling.factor");
    if (type == "none" && old_factor && *old_factor != 1) {
      type = "linear";
      factor = old_factor;
    }
    const std::optional<double> original = keys_.Number("rope.scaling.original_context_length");
    const std::optional<double> attention = keys_.Number("rope.scaling.attn_factor");
    nlohmann::json scaling = nlohmann::json::object();
    if (!facts_.long_factors.empty()) type = "longrope";
    if (type != "longrope" && attention.value_or(1) != 1) {
      keys_.Fail("rope.scaling.attn_factor", "1 (longrope may have others)");
    }
    if (type == "none" || (type == "linear" && factor.value_or(1) == 1)) {
      if (factor && *factor != 0 && *factor != 1) {
        keys_.Fail("rope.scaling.factor", "no value without a type");
      }
      return scaling;
    }
    scaling["rope_type"] = type;
    if (type != "longrope" && factor) scaling["factor"] = *factor;
    if (type == "yarn" || type == "longrope") {
      const bool is_outside = family_.default_original_context != 0;
      if (original)
        (is_outside ? *config_ : scaling)["original_max_position_embeddings"] = *original;
    }
    if (type == "longrope") {
      scaling["short_factor"] = facts_.short_factors;
      scaling["long_factor"] = facts_.long_factors;
      if (attention) scaling["attention_factor"] = *attention;
    } else if (type == "yarn") {
      AddYarn(&scaling);
    } else if (type != "linear") {
      keys_.Fail("rope.scaling.type", "none, linear, yarn or longrope");
    }
    return scaling;
  }

  void AddYarn(nlohmann::json* scaling) {
    const auto copy = [&](const char* name, const char* to) {
      if (const std::optional<double> value = keys_.Number(name)) (*scaling)[to] = *value;
    };
    copy("rope.scaling.yarn_beta_fast", "beta_fast");
    copy("rope.scaling.yarn_beta_slow", "beta_slow");
    copy("rope.scaling.yarn_attn_factor", "attention_factor");
    if (keys_.Has("rope.scaling.yarn_truncate")) {
      (*scaling)["truncate"] = keys_.Bool("rope.scaling.yarn_truncate", true);
    }
    const std::optional<double> extrapolation = keys_.Number("rope.scaling.yarn_ext_factor");
    if (extrapolation && *extrapolation != 1) {
      keys_.Fail("rope.scaling.yarn_ext_factor", "1");
    }
    if (family_.has_rope_temperature) copy("attention.temperature_scale", "llama_4_scaling_beta");
    // mscale_all_dim in f32; with latent attention a tenth of it.
    if (family_.latent == nullptr && !family_.has_rope_temperature) return;
    const double mscale = keys_.Number("rope.scaling.yarn_log_multiplier").value_or(0);
    if (mscale == 0) return;
    const double factor = family_.latent == nullptr ? 1 : 10;
    (*scaling)["mscale"] = (*scaling)["mscale_all_dim"] = std::round(mscale * factor * 1e5) / 1e5;
  }

  // The base is stored after the scaling by alpha, in f32: recognises the published values, so that
  // nothing is rounded.
  void AddAlpha() {
    constexpr double kTheta = 10000.0, kAlphas[] = {1000.0, 50.0};
    const auto stored = static_cast<float>((*config_)["rope_theta"].get<double>());
    if (head_dim_ <= 2) return;
    for (const double alpha : kAlphas) {
      const double scaled = kTheta * std::pow(alpha, head_dim_ / (head_dim_ - 2.0));
      if (static_cast<float>(scaled) != stored) continue;
      (*config_)["rope_theta"] = kTheta;
      (*config_)["rope_scaling"] = {{"rope_type", "dynamic"}, {"alpha", alpha}, {"factor", 1.0}};
      // Says how the context was found.
      keys_.MarkRead("rope.scaling.original_context_length");
      keys_.MarkRead("rope.scaling.type");
      keys_.MarkRead("rope.scaling.factor");
    }
  }

  const Family& family_;
  const GgufFacts& facts_;
  const uint32_t head_dim_;
  ConfigReader* metadata_;
  GgufKeys keys_;
  nlohmann::json* config_;
};

}  // namespace

void AddRopeConfig(const GgufArchitecture& row, const Family& family, const GgufFacts& facts,
                   uint32_t head_dim, ConfigReader* metadata, nlohmann::json* config) {
  RopeConfigMaker(row, family, facts, head_dim, metadata, config).Make();
}

}  // namespace arn::convert
