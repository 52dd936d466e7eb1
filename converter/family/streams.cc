#include "converter/family/streams.h"

#include <cmath>

#include "converter/base/error.h"
#include "converter/hf/json_file.h"
#include "nlohmann/json.hpp"

namespace arn::convert {
namespace {

constexpr uint32_t kDefaultStreams = 4, kDefaultLaurelRank = 64, kMaxLaurelRank = 65536;
constexpr uint32_t kMaxFfn = 1u << 24;
constexpr double kDefaultSparsity = 0.95;
constexpr uint32_t kDefaultSparseLayers = 10;  // of models with more layers than these
constexpr float kEpsilon = 1e-5f;  // of Gemma3nTextModel.forward: in the code, not in the config

// Returns the quantile of the standard normal distribution, by bisection.
double NormalQuantile(double probability) {
  double low = -40.0, high = 40.0;
  for (int i = 0; i < 200; ++i) {
    const double middle = (low + high) / 2;
    (0.5 * std::erfc(-middle / std::sqrt(2.0)) < probability ? low : high) = middle;
  }
  return (low + high) / 2;
}

}  // namespace

StreamsSpec ReadStreams(const Family& family, ConfigReader* config) {
  StreamsSpec streams;
  if (!family.has_streams) return streams;
  constexpr const char* kCount = "altup_num_inputs";
  constexpr const char* kActive = "altup_active_idx";
  streams.n = config->Count(kCount).value_or(kDefaultStreams);
  if (streams.n > kMaxStreams) {
    config->FailKey(kCount, Format("at most %u", kMaxStreams).c_str());
  }
  const int64_t active = config->Int(kActive).value_or(0);
  if (active < 0 || active >= streams.n) {
    config->FailKey(kActive, Format("an index of the %u streams", streams.n).c_str());
  }
  streams.active = static_cast<uint32_t>(active);
  streams.has_scale = config->Bool("altup_correct_scale", true);
  streams.epsilon = kEpsilon;
  // Has an effect on training only.
  config->MarkRead("altup_coef_clip");
  config->MarkRead("altup_lr_multiplier");
  return streams;
}

void ReadLaurel(const Family& family, ConfigReader* config, LayerKindSpec* kind) {
  if (!family.has_streams) return;
  constexpr const char* kRank = "laurel_rank";
  kind->laurel_rank = config->Count(kRank).value_or(kDefaultLaurelRank);
  if (kind->laurel_rank > kMaxLaurelRank) config->FailKey(kRank, "at most 65536");
  kind->attention_sum_factor = static_cast<float>(1.0 / std::sqrt(2.0));
}

std::vector<GateThreshold> GateThresholds(const Family& family, ConfigReader* config,
                                          uint32_t n_layers) {
  std::vector<GateThreshold> thresholds(n_layers);
  if (!family.has_streams) return thresholds;
  constexpr const char* kKey = "activation_sparsity_pattern";
  const nlohmann::json* pattern = config->Find(kKey);
  const std::string expected = Format("a list of %u numbers below 1", n_layers);
  if (pattern != nullptr && (!pattern->is_array() || pattern->size() != n_layers)) {
    config->FailKey(kKey, expected.c_str());
  }
  for (uint32_t i = 0; i < n_layers; ++i) {
    const bool is_sparse = n_layers > kDefaultSparseLayers && i < kDefaultSparseLayers;
    double sparsity = is_sparse ? kDefaultSparsity : 0.0;
    if (pattern != nullptr) {
      if (!(*pattern)[i].is_number()) config->FailKey(kKey, expected.c_str());
      sparsity = (*pattern)[i].get<double>();
    }
    const auto rounded = static_cast<float>(sparsity);  // as the model does
    if (!(rounded < 1.0f)) config->FailKey(kKey, expected.c_str());
    if (!(rounded > 0.0f)) continue;
    thresholds[i] = {true, static_cast<float>(NormalQuantile(static_cast<double>(rounded)))};
  }
  return thresholds;
}

std::vector<uint32_t> FfnWidths(const Family& family, ConfigReader* config, uint32_t n_layers) {
  if (family.ffn != FfnRule::kByLayer) return {};
  const char* key = family.keys.ffn;
  const std::vector<int64_t> given = config->IntOrList(key);
  const nlohmann::json* value = config->Find(key);
  const std::string expected = Format("a width, or a list of %u widths", n_layers);
  const bool is_list = value != nullptr && value->is_array();
  if (value == nullptr || (is_list && given.size() != n_layers)) {
    config->FailKey(key, expected.c_str());
  }
  std::vector<uint32_t> widths;
  for (uint32_t i = 0; i < n_layers; ++i) {
    const int64_t width = given[is_list ? i : 0];
    if (width < 1 || width > kMaxFfn) config->FailKey(key, expected.c_str());
    widths.push_back(static_cast<uint32_t>(width));
  }
  return widths;
}

}  // namespace arn::convert
