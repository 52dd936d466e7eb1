#include "converter/plan/kv_geometry.h"

#include <algorithm>
#include <cinttypes>
#include <initializer_list>
#include <optional>

#include "converter/base/error.h"
#include "converter/family/families.h"
#include "converter/family/text_tower.h"
#include "converter/hf/config_reader.h"
#include "converter/hf/json_file.h"
#include "nlohmann/json.hpp"

namespace arn::convert {
namespace {

// One layer; n_kv_heads 0: it has no keys and values.
struct Layer {
  uint32_t n_kv_heads = 0;
  uint32_t head_dim = 0;
  uint32_t window = 0;
  uint32_t chunk = 0;
  bool keys_only = false;
};

// Aliases of one key across families, the most common first.
using Names = std::initializer_list<const char*>;
constexpr Names kLayerCount = {"num_hidden_layers", "n_layer", "n_layers", "num_layers"};
constexpr Names kHeads = {"num_attention_heads", "n_head", "n_heads", "num_heads"};
constexpr Names kKvHeads = {"num_key_value_heads", "num_kv_heads", "n_head_kv"};
constexpr Names kHidden = {"hidden_size", "n_embd", "d_model"};
constexpr Names kHeadDim = {"head_dim", "attention_head_dim"};
constexpr Names kMaxContext = {"max_position_embeddings", "n_positions", "max_seq_len"};

// Far above any model, and low enough that products do not overflow.
constexpr uint32_t kMaxLayers = 4096;
constexpr uint32_t kMaxHeads = 65536;

// Defaults of configuration classes for configs without layer_types: each pattern-th layer has full
// attention, the others the window.
struct SlidingDefaults {
  const char* model_type;
  uint32_t pattern;
  uint32_t window;
};
constexpr SlidingDefaults kSlidingDefaults[] = {
    {"gemma2", 2, 4096}, {"gemma3_text", 6, 4096}, {"cohere2", 4, 4096}};

// Layer types with a fixed-size recurrent state instead of keys and values.
constexpr const char* kWithoutKv[] = {"linear_attention", "mamba", "conv", "recurrent"};

// Returns the first of `names` that the config has, or null.
const char* Present(ConfigReader* config, Names names) {
  for (const char* name : names) {
    if (config->Has(name)) return name;
  }
  return nullptr;
}

std::optional<uint32_t> CountOf(ConfigReader* config, Names names, uint32_t most) {
  const char* name = Present(config, names);
  if (name == nullptr) return std::nullopt;
  const uint32_t count = *config->Count(name);
  if (count > most) config->FailKey(name, Format("at most %u", most).c_str());
  return count;
}

uint32_t RequiredCountOf(ConfigReader* config, Names names, uint32_t most) {
  if (const std::optional<uint32_t> count = CountOf(config, names, most)) return *count;
  const char* first = *names.begin();
  Fail("%s: %s (or %s): expected a whole number from 1 to %u, found nothing",
       config->label().c_str(), first,
       JoinNames(std::vector<std::string>(names.begin() + 1, names.end())).c_str(), most);
}

// Reads heads and head dimension, the same for all layers.
Layer ReadShape(ConfigReader* config) {
  Layer layer;
  const uint32_t heads = RequiredCountOf(config, kHeads, kMaxHeads);
  // multi_query overrides the number of kv heads, even if the config has one.
  const bool is_single =
      config->Bool("multi_query", false) && !config->Bool("new_decoder_architecture", false);
  layer.n_kv_heads = is_single ? 1 : CountOf(config, kKvHeads, kMaxHeads).value_or(heads);
  if (heads % layer.n_kv_heads != 0) {
    Fail("%s: %s %u is not a multiple of %s %u", config->label().c_str(), Present(config, kHeads),
         heads, Present(config, kKvHeads), layer.n_kv_heads);
  }
  if (const std::optional<uint32_t> dim = CountOf(config, kHeadDim, kMaxHeads)) {
    layer.head_dim = *dim;
    return layer;
  }
  const uint32_t hidden = RequiredCountOf(config, kHidden, INT32_MAX);
  if (hidden % heads != 0) {
    Fail("%s: head_dim is absent, and %s %u is not a multiple of %s %u", config->label().c_str(),
         Present(config, kHidden), hidden, Present(config, kHeads), heads);
  }
  layer.head_dim = hidden / heads;
  return layer;
}

// Sets window and chunk of each layer from layer_types; n_kv_heads 0 for layers without KV.
void ApplyLayerTypes(const nlohmann::json& types, ConfigReader* config, uint32_t window,
                     std::vector<Layer>* layers) {
  if (!types.is_array() || types.size() != layers->size()) {
    config->FailKey("layer_types", Format("a list of %zu entries", layers->size()).c_str());
  }
  const auto needed = [&](size_t i, uint32_t value, const char* key) {
    if (value == 0) {
      Fail("%s: layer_types[%zu] is %s, but %s is absent", config->label().c_str(), i,
           Shown(types[i]).c_str(), key);
    }
    return value;
  };
  for (size_t i = 0; i < types.size(); ++i) {
    Layer& layer = (*layers)[i];
    const nlohmann::json& type = types[i];
    if (type == "full_attention" || type == "attention") continue;
    if (type == "sliding_attention") {
      layer.window = needed(i, window, "sliding_window");
    } else if (type == "chunked_attention") {
      layer.chunk =
          needed(i, config->Count("attention_chunk_size").value_or(0), "attention_chunk_size");
    } else if (std::any_of(std::begin(kWithoutKv), std::end(kWithoutKv),
                           [&](const char* kind) { return type == kind; })) {
      layer.n_kv_heads = 0;
    } else {
      Fail(
          "%s: layer_types[%zu]: expected full_attention, sliding_attention, chunked_attention or "
          "a kind without keys and values (%s), found %s",
          config->label().c_str(), i, JoinNames(kWithoutKv).c_str(), Shown(type).c_str());
    }
  }
}

// Sets chunks; layers without RoPE have full attention. no_rope_layers[i] is 0 for those; an absent
// or empty list means each no_rope_layer_interval-th.
void ApplyChunks(ConfigReader* config, uint32_t chunk, std::vector<Layer>* layers) {
  const std::vector<int64_t> with_rope = config->IntOrList("no_rope_layers");
  const uint32_t interval = config->Count("no_rope_layer_interval").value_or(4);
  if (!with_rope.empty() && with_rope.size() != layers->size()) {
    config->FailKey("no_rope_layers", Format("a list of %zu entries", layers->size()).c_str());
  }
  for (size_t i = 0; i < layers->size(); ++i) {
    const bool has_rope = with_rope.empty() ? (i + 1) % interval != 0 : with_rope[i] != 0;
    if (has_rope) (*layers)[i].chunk = chunk;
  }
}

void ApplyWindows(const nlohmann::json& json, ConfigReader* config, std::vector<Layer>* layers,
                  std::vector<std::string>* notes) {
  const std::string model_type = config->String("model_type").value_or("");
  const auto defaults =
      std::find_if(std::begin(kSlidingDefaults), std::end(kSlidingDefaults),
                   [&](const SlidingDefaults& row) { return model_type == row.model_type; });
  const bool has_defaults = defaults != std::end(kSlidingDefaults);
  // Absent differs from null: null turns a default off.
  uint32_t window = has_defaults && !json.contains("sliding_window")
                        ? defaults->window
                        : config->Count("sliding_window").value_or(0);
  if (!config->Bool("use_sliding_window", true)) window = 0;
  if (const nlohmann::json* types = config->Find("layer_types")) {
    ApplyLayerTypes(*types, config, window, layers);
    return;
  }
  if (const std::optional<uint32_t> chunk = config->Count("attention_chunk_size")) {
    ApplyChunks(config, *chunk, layers);
    return;
  }
  if (window == 0) return;
  const std::optional<uint32_t> pattern = config->Count("sliding_window_pattern");
  const uint32_t every = pattern ? *pattern : has_defaults ? defaults->pattern : 0;
  const int64_t first = config->Int("max_window_layers").value_or(0);
  for (size_t i = 0; i < layers->size(); ++i) {
    const bool slides = every != 0 ? (i + 1) % every != 0 : static_cast<int64_t>(i) >= first;
    if (slides) (*layers)[i].window = window;
  }
  if (every == 0 && first == 0) {
    notes->push_back(Format(
        "sliding_window %u is assumed for every layer: the config does not say which have it",
        window));
  }
}

// Reads a family that is in no table, by the most common keys.
std::vector<Layer> ReadLayers(const nlohmann::json& json, ConfigReader* config,
                              std::vector<std::string>* notes) {
  if (config->Bool("is_encoder_decoder", false)) {
    config->FailKey("is_encoder_decoder", "false (only decoders are supported)");
  }
  if (config->Has("kv_lora_rank")) {
    config->FailKey("kv_lora_rank",
                    "no value (a cache of compressed keys and values is not supported)");
  }
  std::vector<Layer> layers(RequiredCountOf(config, kLayerCount, kMaxLayers), ReadShape(config));
  ApplyWindows(json, config, &layers, notes);
  const uint32_t shared = static_cast<uint32_t>(
      std::clamp<int64_t>(config->Int("num_kv_shared_layers").value_or(0), 0, INT32_MAX));
  if (shared >= layers.size()) {
    config->FailKey("num_kv_shared_layers", Format("less than %zu", layers.size()).c_str());
  }
  layers.resize(layers.size() - shared);
  return layers;
}

std::string ModelName(ConfigReader* config) {
  const nlohmann::json* architectures = config->Find("architectures");
  if (architectures != nullptr && architectures->is_array() && !architectures->empty() &&
      (*architectures)[0].is_string()) {
    return (*architectures)[0].get<std::string>();
  }
  return config->String("model_type").value_or("");
}

void AddToGroups(const Layer& layer, std::vector<KvGeometryGroup>* groups) {
  const auto at = std::find_if(groups->begin(), groups->end(), [&](const KvGeometryGroup& group) {
    return group.n_kv_heads == layer.n_kv_heads && group.head_dim == layer.head_dim &&
           group.window == layer.window && group.chunk == layer.chunk &&
           group.keys_only == layer.keys_only;
  });
  if (at != groups->end()) {
    ++at->n_layers;
  } else {
    groups->push_back(
        {1, layer.n_kv_heads, layer.head_dim, layer.window, layer.chunk, layer.keys_only});
  }
}

void AddState(uint64_t floats, std::vector<StateGeometryGroup>* groups) {
  for (StateGeometryGroup& group : *groups) {
    if (group.state_floats == floats) {
      ++group.n_layers;
      return;
    }
  }
  groups->push_back({1, floats});
}

}  // namespace

KvGeometry ReadKvGeometry(const nlohmann::json& json, const std::string& label) {
  const TextTower tower = FindTextTower(json, label);
  if (!tower.wrapper.empty()) {
    KvGeometry text = ReadKvGeometry(tower.config, tower.label);
    text.model = tower.wrapper;
    return text;
  }
  ConfigReader config(json, label);
  KvGeometry geometry;
  geometry.model = ModelName(&config);
  // Multimodal models nest their decoder's config.
  const nlohmann::json* inner = config.Find("text_config");
  if (inner != nullptr && Present(&config, kLayerCount) == nullptr) {
    KvGeometry text = ReadKvGeometry(*inner, label + ": text_config");
    if (!geometry.model.empty()) text.model = geometry.model;
    return text;
  }
  geometry.max_context = CountOf(&config, kMaxContext, INT32_MAX).value_or(0);
  uint32_t without_kv = 0, n_states = 0;
  if (const auto known = ReadLayerHeads(json, label)) {
    bool is_beside = false;
    for (const LayerKindSpec& kind : *known) {
      if (kind.has_state()) {
        ++n_states;
        AddState(kind.state_floats(), &geometry.states);
      }
      is_beside = is_beside || kind.is_hybrid;
      if (!kind.has_attention()) continue;
      AddToGroups({kind.n_kv_heads, kind.head_dim, kind.window, kind.chunk, kind.is_latent()},
                  &geometry.groups);
    }
    if (n_states != 0) {
      geometry.notes.push_back(Format(
          "%u layer%s a recurrent state %s keys and values, of the same size for any context",
          n_states, n_states == 1 ? " keeps" : "s keep", is_beside ? "beside" : "instead of"));
    }
  } else {
    for (const Layer& layer : ReadLayers(json, &config, &geometry.notes)) {
      if (layer.n_kv_heads == 0) {
        ++without_kv;
      } else {
        AddToGroups(layer, &geometry.groups);
      }
    }
  }
  if (without_kv != 0) {
    geometry.notes.push_back(
        Format("%u layer%s no keys and values; the state that they have "
               "instead is not counted",
               without_kv, without_kv == 1 ? " keeps" : "s keep"));
  }
  if (geometry.groups.empty() && n_states == 0)
    Fail("%s: no layer keeps keys and values", label.c_str());
  return geometry;
}

}  // namespace arn::convert
