#include "converter/family/layer_windows.h"

#include <algorithm>
#include <optional>

#include "converter/base/error.h"
#include "converter/family/linear_mixers.h"
#include "converter/hf/json_file.h"
#include "nlohmann/json.hpp"

namespace arn::convert {
namespace {

constexpr uint32_t kDefaultRopeInterval = 4;

// sliding_window: absent means the default of the configuration class, null means off.
uint32_t SlidingWindow(const Family& family, ConfigReader* config, const nlohmann::json& json) {
  constexpr const char* kOwn = "sliding_window";
  const bool has_own = json.contains(kOwn) && family.window_divisor != 1;
  if (has_own && config->IsNull(kOwn)) config->FailKey(kOwn, "a number");
  if (has_own) config->MarkRead(family.window_key);
  if (has_own) return config->Count(kOwn).value_or(0);
  const char* key = family.window_key;
  if (!json.contains(key)) return family.default_window / family.window_divisor;
  if (family.window_divisor != 1 && config->IsNull(key)) config->FailKey(key, "a number");
  return config->Count(key).value_or(0) / family.window_divisor;
}

// attention_types: [[["global", "local"], 6], ...], each list of names with its repeat count.
// attention_layers is the same written out, and takes precedence: newer configs have both.
std::vector<bool> LocalLayers(ConfigReader* config, uint32_t n_layers) {
  constexpr const char* kExpected =
      "lists of \"global\" and \"local\" with the number of repetitions";
  std::vector<bool> local;
  const auto add = [&](const nlohmann::json& name, const char* key) {
    if (name != "global" && name != "local") config->FailKey(key, kExpected);
    if (local.size() < n_layers + size_t{1}) local.push_back(name == "local");
  };
  const nlohmann::json* types = config->Find("attention_types");
  if (const nlohmann::json* layers = config->Find("attention_layers")) {
    if (!layers->is_array()) config->FailKey("attention_layers", kExpected);
    for (const nlohmann::json& name : *layers) add(name, "attention_layers");
  } else if (types != nullptr) {
    if (!types->is_array()) config->FailKey("attention_types", kExpected);
    for (const nlohmann::json& item : *types) {
      if (!item.is_array() || item.size() != 2 || !item[0].is_array() ||
          !item[1].is_number_unsigned()) {
        config->FailKey("attention_types", kExpected);
      }
      const auto times = std::min<uint64_t>(item[1].get<uint64_t>(), n_layers + uint64_t{1});
      for (uint64_t i = 0; i < times; ++i) {
        for (const nlohmann::json& name : item[0]) add(name, "attention_types");
      }
    }
  } else {
    for (uint32_t i = 0; i < n_layers; ++i) local.push_back(i % 2 == 1);
  }
  if (local.size() != n_layers) {
    config->FailKey("attention_types", Format("as many as the %u layers", n_layers).c_str());
  }
  return local;
}

// Gives layers from max_window_layers on the window.
void FillFrom(const Family& family, ConfigReader* config, uint32_t window,
              std::vector<uint32_t>* windows) {
  const int64_t first = config->Int("max_window_layers").value_or(family.default_window_from);
  for (size_t i = 0; i < windows->size(); ++i) {
    (*windows)[i] = static_cast<int64_t>(i) >= first ? window : 0;
  }
}

// Returns how many layers the config calls dense by a number, mlp_layer_types aside.
uint32_t DenseLayers(const Family& family, ConfigReader* config, uint32_t n_layers) {
  const char* key = family.dense_layers_key;
  const int64_t n = config->Int(key).value_or(family.default_dense_layers);
  if (n < 0 || n > n_layers) config->FailKey(key, "a number of the layers");
  return static_cast<uint32_t>(n);
}

// Returns the layers' windows by the family's rule alone. *window: the window of layers that have
// one.
std::vector<uint32_t> WindowsByRule(const Family& family, ConfigReader* config,
                                    const nlohmann::json& json, uint32_t n_layers,
                                    uint32_t* window) {
  std::vector<uint32_t> windows(n_layers, 0);
  *window = 0;
  switch (family.window) {
    case WindowRule::kNone:
    case WindowRule::kChunks: break;
    case WindowRule::kEveryLayer:
      *window = SlidingWindow(family, config, json);
      std::fill(windows.begin(), windows.end(), *window);
      break;
    case WindowRule::kEveryIfUsed:
    case WindowRule::kFromLayer:
    case WindowRule::kLayerTypes: {
      const bool is_used = config->Bool("use_sliding_window", false);
      // Without use_sliding_window the key is present but has no effect.
      config->MarkRead("sliding_window");
      *window = is_used ? SlidingWindow(family, config, json) : 0;
      if (family.window == WindowRule::kLayerTypes) break;
      if (family.window == WindowRule::kEveryIfUsed) {
        std::fill(windows.begin(), windows.end(), *window);
        break;
      }
      FillFrom(family, config, *window, &windows);
      break;
    }
    case WindowRule::kNamedLayers: *window = SlidingWindow(family, config, json); break;
    case WindowRule::kLaterLayers:
      *window = SlidingWindow(family, config, json);
      FillFrom(family, config, *window, &windows);
      break;
    case WindowRule::kLocalLayers: {
      *window = config->Count("window_size").value_or(family.default_window);
      const std::vector<bool> local = LocalLayers(config, n_layers);
      for (uint32_t i = 0; i < n_layers; ++i) windows[i] = local[i] ? *window : 0;
      break;
    }
    case WindowRule::kPattern: {
      *window = SlidingWindow(family, config, json);
      uint32_t pattern = family.default_pattern;
      // Without effect beside layer_types, and then of any type.
      if (family.has_pattern_key && config->Has("layer_types")) {
        config->MarkRead(family.pattern_key);
      } else if (family.has_pattern_key) {
        pattern = config->Count(family.pattern_key).value_or(pattern);
      }
      uint32_t start = 0;
      if (const char* key = family.prefix_pattern_key) {
        const uint32_t prefix = config->Count(key).value_or(1);
        start = DenseLayers(family, config, n_layers);
        for (uint32_t i = 0; i < start; ++i) windows[i] = (i + 1) % prefix == 0 ? 0 : *window;
      }
      for (uint32_t i = start; i < n_layers; ++i) {
        const bool is_full = pattern != 0 && (i - start + family.pattern_phase) % pattern == 0;
        windows[i] = is_full ? 0 : *window;
      }
      break;
    }
  }
  return windows;
}

// True if the base of the RoPE is given as null: in rope_scaling or rope_parameters, or beside
// them.
bool HasNullTheta(ConfigReader* config) {
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const nlohmann::json* object = config->Find(key);
    if (object == nullptr || !object->is_object() || object->empty()) continue;
    if (object->contains("rope_theta")) return (*object)["rope_theta"].is_null();
    break;
  }
  return config->IsNull("rope_theta");
}

}  // namespace

std::vector<uint32_t> LayerWindows(const Family& family, ConfigReader* config,
                                   const nlohmann::json& json, uint32_t n_layers) {
  uint32_t window = 0;
  std::vector<uint32_t> windows = WindowsByRule(family, config, json, n_layers, &window);
  if (family.has_global_heads) windows.back() = 0;
  // layer_types has another meaning in these families.
  if (family.window == WindowRule::kChunks || family.mixer == MixerRule::kConvByLayer ||
      family.mixer == MixerRule::kLinearAttention || family.only_layer_type != nullptr) {
    return windows;
  }
  const nlohmann::json* types = config->Find("layer_types");
  if (types == nullptr) {
    if (family.window == WindowRule::kLayerTypes && window != 0) {
      config->FailKey("layer_types", "a list, because use_sliding_window is true");
    }
    return windows;
  }
  if (!types->is_array() || types->size() != n_layers) {
    config->FailKey("layer_types", Format("a list of %u entries", n_layers).c_str());
  }
  for (uint32_t i = 0; i < n_layers; ++i) {
    const nlohmann::json& type = (*types)[i];
    const bool slides = type == "sliding_attention";
    if (!slides && type != "full_attention") {
      Fail("%s: layer_types[%u]: expected full_attention or sliding_attention, found %s",
           config->label().c_str(), i, Shown(type).c_str());
    }
    if (slides && window == 0) {
      Fail("%s: layer_types[%u] is sliding_attention, but no sliding window is in use",
           config->label().c_str(), i);
    }
    const uint32_t wanted = slides ? window : 0;
    const bool is_free = family.window != WindowRule::kNone &&
                         family.window != WindowRule::kEveryLayer &&
                         family.window != WindowRule::kEveryIfUsed;
    if (!is_free && wanted != windows[i]) {
      Fail("%s: layer_types[%u] is %s, which %s does not have", config->label().c_str(), i,
           Shown(type).c_str(), family.architecture);
    }
    windows[i] = wanted;
  }
  if (family.has_global_heads) windows.back() = 0;
  return windows;
}

std::vector<uint32_t> LayerChunks(const Family& family, ConfigReader* config,
                                  const nlohmann::json& json, uint32_t n_layers) {
  std::vector<uint32_t> chunks(n_layers, 0);
  if (family.window != WindowRule::kChunks) return chunks;
  const uint32_t chunk = json.contains("attention_chunk_size")
                             ? config->Count("attention_chunk_size").value_or(0)
                             : family.default_window;
  const std::vector<bool> rotates = LayersWithRope(family, config, std::vector<uint32_t>(n_layers));
  for (uint32_t i = 0; i < n_layers; ++i) chunks[i] = rotates[i] ? chunk : 0;
  const nlohmann::json* types = config->Find("layer_types");
  if (types == nullptr) return chunks;
  if (!types->is_array() || types->size() != n_layers) {
    config->FailKey("layer_types", Format("a list of %u entries", n_layers).c_str());
  }
  for (uint32_t i = 0; i < n_layers; ++i) {
    const nlohmann::json& type = (*types)[i];
    if (type != "chunked_attention" && type != "full_attention") {
      Fail("%s: layer_types[%u]: expected full_attention or chunked_attention, found %s",
           config->label().c_str(), i, Shown(type).c_str());
    }
    chunks[i] = type == "chunked_attention" ? chunk : 0;
  }
  return chunks;
}

std::vector<bool> LayersWithExperts(const Family& family, ConfigReader* config, uint32_t n_layers) {
  std::vector<bool> has_experts(n_layers, family.experts != ExpertRule::kNone);
  const auto each = [&](uint32_t step) {
    for (uint32_t i = 0; i < n_layers; ++i) has_experts[i] = (i + 1) % step == 0;
  };
  const auto set = [&](const char* key, bool value) {
    for (const int64_t layer : config->IntOrList(key)) {
      if (layer < 0 || layer >= n_layers) {
        config->FailKey(key, Format("numbers of the %u layers", n_layers).c_str());
      }
      has_experts[static_cast<size_t>(layer)] = value;
    }
  };
  const auto integer = [&](const char* key, int64_t fallback) {
    return config->Int(key).value_or(fallback);
  };
  switch (family.experts) {
    case ExpertRule::kNone:
    case ExpertRule::kEveryLayer: break;
    case ExpertRule::kByType: {
      const nlohmann::json* types = config->Find("mlp_layer_types");
      const char* key = family.dense_layers_key;
      const int64_t dense = key == nullptr || types != nullptr
                                ? family.default_dense_layers
                                : integer(key, family.default_dense_layers);
      if (key != nullptr) config->MarkRead(key);
      for (uint32_t i = 0; i < n_layers; ++i) has_experts[i] = i >= dense;
      if (types == nullptr) break;
      if (!types->is_array() || types->size() != n_layers) {
        config->FailKey("mlp_layer_types", Format("a list of %u entries", n_layers).c_str());
      }
      for (uint32_t i = 0; i < n_layers; ++i) {
        if ((*types)[i] != "sparse" && (*types)[i] != "dense") {
          config->FailKey("mlp_layer_types", "dense or sparse for each layer");
        }
        has_experts[i] = (*types)[i] == "sparse";
      }
      break;
    }
    case ExpertRule::kAfterDense: {
      const int64_t first = integer(family.dense_layers_key, family.default_dense_layers);
      for (uint32_t i = 0; i < n_layers; ++i) has_experts[i] = i >= first;
      break;
    }
    case ExpertRule::kBlocks: return BlocksWithExperts(config);
    case ExpertRule::kPeriod: {
      const uint32_t period = config->Count("expert_layer_period").value_or(2);
      const int64_t offset = integer("expert_layer_offset", 1);
      if (offset < 0 || offset >= period)
        config->FailKey("expert_layer_offset", "below the period");
      for (uint32_t i = 0; i < n_layers; ++i) has_experts[i] = i % period == offset;
      break;
    }
    case ExpertRule::kIfEnabled:
      has_experts.assign(n_layers, config->Bool("enable_moe_block", false));
      break;
    case ExpertRule::kInterval: {
      each(config->Count("moe_layer_interval").value_or(1));
      const int64_t first = integer("moe_layer_start_index", 1);
      const int64_t last = integer("moe_layer_end_index", -1);
      for (uint32_t i = 0; i < n_layers; ++i) {
        has_experts[i] = has_experts[i] && i >= first && (last == -1 || i <= last);
      }
      break;
    }
    case ExpertRule::kSparseStep:
      each(config->Count("decoder_sparse_step").value_or(1));
      set("mlp_only_layers", false);
      break;
    case ExpertRule::kListed:
      each(config->Count("interleave_moe_layer_step").value_or(1));  // present beside the list
      if (config->Has("moe_layers")) has_experts.assign(n_layers, false);
      set("moe_layers", true);
      break;
  }
  return has_experts;
}

std::vector<bool> LayersWithRope(const Family& family, ConfigReader* config,
                                 const std::vector<uint32_t>& windows) {
  const auto n_layers = static_cast<uint32_t>(windows.size());
  std::vector<bool> rotates(n_layers, family.rope != RopeRule::kNone);
  if (family.ropes_by_key) {
    constexpr const char* kKey = "position_embedding_type";
    const std::string type = config->String(kKey).value_or("");
    rotates.assign(n_layers, type == "rope");
    if (type != "rope") {
      for (const char* key : {"rope_parameters", "rope_scaling", "rope_theta"})
        config->MarkRead(key);
    }
  }
  if (family.rope == RopeRule::kByTheta && HasNullTheta(config)) {
    rotates.assign(n_layers, false);
    for (const char* key : {"rope_parameters", "rope_scaling", "rope_theta"}) config->MarkRead(key);
  }
  if (family.rope == RopeRule::kWindowed || family.rope == RopeRule::kOnlyWindowed ||
      family.rope == RopeRule::kWindowedOrDense) {
    const bool is_off = config->IsNull("sliding_window");
    if (is_off && family.rope != RopeRule::kWindowed) {
      config->FailKey("sliding_window", "a number");
    }
    for (uint32_t i = 0; i < n_layers; ++i) rotates[i] = is_off || windows[i] != 0;
  }
  if (family.rope == RopeRule::kWindowedOrDense &&
      config->Count(family.prefix_pattern_key).value_or(1) == 1) {
    const std::vector<bool> has_experts = LayersWithExperts(family, config, n_layers);
    for (uint32_t i = 0; i < n_layers; ++i) rotates[i] = rotates[i] || !has_experts[i];
  }
  if (family.rope != RopeRule::kNotEachFourth) return rotates;
  const uint32_t interval = config->Count("no_rope_layer_interval").value_or(kDefaultRopeInterval);
  const std::vector<int64_t> list = config->IntOrList("no_rope_layers");
  if (!list.empty() && list.size() != n_layers) {
    config->FailKey("no_rope_layers", Format("a list of %u entries", n_layers).c_str());
  }
  for (uint32_t i = 0; i < n_layers; ++i) {
    rotates[i] = list.empty() ? (i + 1) % interval != 0 : list[i] != 0;
  }
  return rotates;
}

}  // namespace arn::convert
