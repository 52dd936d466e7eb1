#include "converter/family/shared_kv.h"

#include <algorithm>

#include "converter/base/error.h"

namespace arn::convert {
namespace {

constexpr uint32_t kMaxPerLayerWidth = 1u << 16;

}  // namespace

std::vector<uint32_t> KvLayers(const Family& family, ConfigReader* config,
                               const std::vector<uint32_t>& windows) {
  if (!family.has_shared_kv) return {};
  constexpr const char* kKey = "num_kv_shared_layers";
  const auto n_layers = static_cast<int64_t>(windows.size());
  const int64_t n_shared = config->Int(kKey).value_or(family.default_shared_kv);
  if (n_shared < 0 || n_shared >= n_layers) config->FailKey(kKey, "fewer than the layers");
  std::vector<uint32_t> layers;
  for (int64_t i = 0; i < n_layers; ++i) {
    int64_t from = i;
    if (i >= n_layers - n_shared) {
      from = n_layers - n_shared - 1;
      while (from >= 0 && windows[static_cast<size_t>(from)] != windows[static_cast<size_t>(i)]) {
        --from;
      }
      if (from < 0) {
        config->FailKey(kKey, Format("a layer of the type of layer %u before the shared ones",
                                     static_cast<uint32_t>(i))
                                  .c_str());
      }
    }
    layers.push_back(static_cast<uint32_t>(from));
  }
  return layers;
}

GlobalHeads ReadGlobalHeads(const Family& family, ConfigReader* config, const LayerKindSpec& kind) {
  GlobalHeads heads = {kind.head_dim, kind.n_kv_heads, kind.k_is_v};
  if (!family.has_global_heads) return heads;
  constexpr const char* kDim = "global_head_dim";
  const int64_t dim = config->Int(kDim).value_or(family.default_global_head_dim);
  if (dim < 0 || dim > 65536) config->FailKey(kDim, "a number of at least 0");
  if (dim != 0) heads.head_dim = static_cast<uint32_t>(dim);
  constexpr const char* kHeads = "num_global_key_value_heads";
  const auto n = config->Count(kHeads);
  heads.k_is_v = config->Bool("attention_k_eq_v", false);
  if (!heads.k_is_v) return heads;
  heads.n_kv_heads = n ? *n : config->RequiredCount(kHeads);
  if (kind.n_heads % heads.n_kv_heads != 0) {
    config->FailKey(kHeads, Format("a divisor of the %u heads", kind.n_heads).c_str());
  }
  return heads;
}

std::vector<uint32_t> LayerHeads(const Family& family, ConfigReader* config,
                                 const LayerKindSpec& kind, uint32_t n_layers) {
  std::vector<uint32_t> heads(n_layers, kind.n_heads);
  const char* key = family.layer_heads_key;
  if (key == nullptr || !config->Has(key)) return heads;
  const std::vector<int64_t> list = config->IntOrList(key);
  const bool are_valid = std::all_of(list.begin(), list.end(), [&](int64_t n) {
    return n > 0 && n <= 65536 && n % kind.n_kv_heads == 0;
  });
  if (list.size() != n_layers || !are_valid) {
    config->FailKey(
        key,
        Format("a multiple of %u for each of the %u layers", kind.n_kv_heads, n_layers).c_str());
  }
  for (uint32_t i = 0; i < n_layers; ++i) heads[i] = static_cast<uint32_t>(list[i]);
  return heads;
}

uint32_t SharedFfnFactor(const Family& family, ConfigReader* config) {
  return family.has_double_wide_key && config->Bool("use_double_wide_mlp", false) ? 2 : 1;
}

void ReadPerLayer(const Family& family, ConfigReader* config, DecoderSpec* spec) {
  if (family.default_per_layer == 0) return;
  constexpr const char* kWidth = "hidden_size_per_layer_input";
  constexpr const char* kVocab = "vocab_size_per_layer_input";
  const int64_t width = config->Int(kWidth).value_or(family.default_per_layer);
  // A layer with streams always reads its part.
  if (width < (family.has_streams ? 1 : 0) || width > kMaxPerLayerWidth) {
    config->FailKey(kWidth, "a width");
  }
  const uint32_t rows = config->Count(kVocab).value_or(262144);
  if (width != 0 && rows != spec->vocab && !family.pads_per_layer) {
    config->FailKey(kVocab, Format("vocab_size, %u", spec->vocab).c_str());
  }
  spec->per_layer_width = static_cast<uint32_t>(width);
  spec->per_layer_rows = rows;
}

}  // namespace arn::convert
