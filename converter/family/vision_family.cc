#include "converter/family/vision_family.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "converter/base/error.h"
#include "converter/family/families.h"
#include "converter/family/image_processor.h"
#include "converter/family/vision_table.h"
#include "converter/hf/config_reader.h"
#include "kernels/math/rope_frequencies.h"
#include "nlohmann/json.hpp"

namespace arn::convert {
namespace {

namespace fs = std::filesystem;

const VisionFamily* FindVisionFamily(const nlohmann::json& config) {
  const auto names = config.find("architectures");
  if (names == config.end() || !names->is_array() || names->empty()) return nullptr;
  const auto at =
      std::find_if(std::begin(kVisionFamilies), std::end(kVisionFamilies),
                   [&](const VisionFamily& row) { return (*names)[0] == row.architecture; });
  return at == std::end(kVisionFamilies) ? nullptr : at;
}

// The side of a square of n.
uint32_t SideOf(ConfigReader* reader, const char* key, uint32_t n) {
  const auto side = static_cast<uint32_t>(std::lround(std::sqrt(static_cast<double>(n))));
  if (side * side != n) reader->FailKey(key, "a square");
  return side;
}

// A half of the pairs turns by a patch's row, the other by its column.
RopeSpec TowerRope(double theta, uint32_t head_dim) {
  RopeSpec rope;
  rope.rotary_dim = head_dim;
  const uint32_t n = head_dim / 4;
  for (const uint8_t axis : {uint8_t{1}, uint8_t{2}}) {
    for (uint32_t i = 0; i < n; ++i) {
      rope.inv_freq.push_back(LinearRopeFrequency(theta, head_dim / 2, i, 1.0f));
      rope.axes.push_back(axis);
    }
  }
  return rope;
}

// The same for halves of heads (converter/tensors/tensor_plan.cc exchanges the blocks between): the
// first pairs turn by the column. REQUIRES: head_dim is a multiple of 4.
RopeSpec HalvesRope(const VisionFamily& family, uint32_t head_dim, ConfigReader* reader) {
  double theta = family.rope_theta;
  if (const nlohmann::json* parameters = reader->Find("rope_parameters")) {
    ConfigReader rope(*parameters, reader->label() + ": rope_parameters");
    theta = rope.Number("rope_theta").value_or(theta);
    if (rope.String("rope_type").value_or("default") != "default") {
      rope.FailKey("rope_type", "default");
    }
    RefuseUnread(&rope, kSilentTowerKeys);
  }
  RopeSpec rope = TowerRope(theta, head_dim);
  for (uint8_t& axis : rope.axes) axis = static_cast<uint8_t>(kRopeAxes - axis);
  return rope;
}

// Returns how many pairs turn by time, row and column.
std::vector<int64_t> MropeSections(const VisionFamily& family, const nlohmann::json& config,
                                   const std::string& label) {
  std::vector<int64_t> sections(family.mrope_section, family.mrope_section + kRopeAxes);
  const bool has_text = config.contains("text_config");
  ConfigReader reader(has_text ? config["text_config"] : config,
                      label + (has_text ? ": text_config" : ""));
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const nlohmann::json* parameters = reader.Find(key);
    if (parameters == nullptr || !parameters->contains("mrope_section")) continue;
    ConfigReader rope(*parameters, reader.label() + ": " + key);
    sections = rope.IntOrList("mrope_section");
    const bool fits = sections.size() == kRopeAxes &&
                      std::all_of(sections.begin(), sections.end(),
                                  [](int64_t n) { return n >= 0 && n <= kMaxHeadDim; });
    if (!fits) rope.FailKey("mrope_section", "three numbers of pairs");
  }
  return sections;
}

// Interleaved: the axes take turns, until row and column each have their number of pairs; time has
// the rest (apply_interleaved_mrope in transformers' modeling_qwen3_vl.py). Chunks: one after the
// other (apply_multimodal_rotary_pos_emb in modeling_qwen2_vl.py).
void GiveAxes(const VisionFamily& family, const nlohmann::json& config, const std::string& label,
              RopeSpec* rope) {
  const std::vector<int64_t> sections = MropeSections(family, config, label);
  const uint32_t n_pairs = rope->rotary_dim / 2;
  if (family.mrope == MropeOrder::kChunks) {
    for (uint8_t axis = 0; axis < kRopeAxes; ++axis) {
      rope->axes.insert(rope->axes.end(), static_cast<size_t>(sections[axis]), axis);
    }
    if (rope->axes.size() == n_pairs) return;
    Fail("%s: mrope_section: %zu pairs in all, RoPE has %u", label.c_str(), rope->axes.size(),
         n_pairs);
  }
  rope->axes.assign(n_pairs, 0);
  for (uint32_t i = 0; i < n_pairs; ++i) {
    const uint32_t axis = i % kRopeAxes;
    if (axis != 0 && i < kRopeAxes * sections[axis]) rope->axes[i] = static_cast<uint8_t>(axis);
  }
}

// Lets all layers but some attend within windows.
void GiveWindows(ConfigReader* reader, DecoderSpec* tower) {
  LayerKindSpec in_windows = tower->kinds[0];
  in_windows.has_image_windows = true;
  tower->kinds.push_back(in_windows);
  constexpr const char* kWhole = "fullatt_block_indexes";
  std::vector<int64_t> whole = {7, 15, 23, 31};
  if (reader->Has(kWhole)) whole = reader->IntOrList(kWhole);
  std::fill(tower->layer_kinds.begin(), tower->layer_kinds.end(), 1);
  for (const int64_t layer : whole) {
    if (layer < 0) reader->FailKey(kWhole, "indices of layers");
    const auto i = static_cast<uint64_t>(layer);
    if (i < tower->layer_kinds.size()) tower->layer_kinds[i] = 0;
  }
}

// The tower's layers, in a decoder's fields.
DecoderSpec ReadTower(const VisionFamily& family, ConfigReader* reader, VisionSpec* spec) {
  DecoderSpec tower;
  tower.architecture = family.architecture;
  tower.names = family.names;
  tower.hidden = CountOr(reader, family.keys.hidden, family.hidden);
  LayerKindSpec kind;
  kind.n_heads = kind.n_kv_heads = CountOr(reader, family.keys.heads, family.heads);
  if (const char* key = family.keys.kv_heads) {
    kind.n_kv_heads = CountOr(reader, key, family.heads);
    if (kind.n_heads % kind.n_kv_heads != 0) {
      reader->FailKey(key, Format("a divisor of %s", family.keys.heads).c_str());
    }
  }
  if (family.keys.head_dim != nullptr) {
    kind.head_dim = CountOr(reader, family.keys.head_dim, family.hidden / family.heads);
  } else if (tower.hidden % kind.n_heads != 0) {
    reader->FailKey(family.keys.heads, Format("a divisor of %s", family.keys.hidden).c_str());
  } else {
    kind.head_dim = tower.hidden / kind.n_heads;
  }
  kind.attention_scale =
      family.has_unscaled_scores ? 1.0f : 1.0f / std::sqrt(static_cast<float>(kind.head_dim));
  kind.has_qk_norm = kind.has_v_norm = family.has_qkv_norms;
  kind.rope = kNoRope;
  kind.ffn_dim = family.keys.ffn_ratio == nullptr
                     ? CountOr(reader, family.keys.ffn, family.ffn)
                     : tower.hidden * CountOr(reader, family.keys.ffn_ratio, family.ffn);
  kind.norm = family.norm;
  kind.norm_epsilon = static_cast<float>(reader->Number(family.keys.epsilon).value_or(1e-6));
  const std::string name = reader->String(family.keys.activation).value_or(family.activation);
  const std::optional<Activation> activation = ActivationOf(name);
  if (!activation) reader->FailKey(family.keys.activation, "a known activation");
  kind.activation = *activation;
  kind.is_gated = family.is_gated;
  kind.has_qkv_bias = kind.has_attention_out_bias = kind.has_mlp_bias = family.has_biases;
  tower.kinds = {kind};
  tower.layer_kinds.assign(CountOr(reader, family.keys.layers, family.layers), 0);
  if (family.window_size != 0) GiveWindows(reader, &tower);
  tower.final_norm_kind = family.norm;
  tower.final_norm_epsilon = kind.norm_epsilon;
  if (family.keys.channels != nullptr) {
    RequireEqual(reader, family.keys.channels, kPixelChannels, kPixelChannels, "3");
  }
  if (family.frames != 0) spec->frames = CountOr(reader, "temporal_patch_size", family.frames);
  if (family.rope_theta != 0) {
    if (kind.head_dim % 4 != 0) reader->FailKey(family.keys.heads, "heads of a multiple of 4");
    tower.rotates_halves = family.rotates_halves;
    tower.ropes.push_back(family.rotates_halves ? HalvesRope(family, kind.head_dim, reader)
                                                : TowerRope(family.rope_theta, kind.head_dim));
  }
  if (const char* key = family.clamps_key) spec->has_clamps = reader->Bool(key, false);
  spec->patch_size = CountOr(reader, "patch_size", family.patch_size);
  spec->has_patch_bias = family.has_patch_bias;
  if (family.positions == nullptr) return tower;
  spec->positions = family.positions;
  if (family.image_size != 0) {
    const uint32_t image = CountOr(reader, "image_size", family.image_size);
    if (image % spec->patch_size != 0) reader->FailKey("image_size", "a multiple of patch_size");
    spec->position_side = image / spec->patch_size;
  } else {
    const uint32_t n = CountOr(reader, family.keys.positions, family.n_positions);
    const bool has_axes = family.grid_positions == GridPositions::kAxes;
    spec->stored_positions = has_axes ? n : 0;
    spec->position_side = has_axes ? n : SideOf(reader, family.keys.positions, n);
  }
  return tower;
}

uint32_t MergeSide(const VisionFamily& family, ConfigReader* whole, ConfigReader* tower,
                   uint32_t position_side) {
  if (family.tokens_key == nullptr) {
    return CountOr(family.has_merge_in_tower ? tower : whole, family.merge_key,
                   family.default_merge);
  }
  const uint32_t n = CountOr(whole, family.tokens_key, family.default_merge);
  const uint32_t side = SideOf(whole, family.tokens_key, n);
  if (position_side % side != 0) {
    whole->FailKey(family.tokens_key, "the square of a divisor of the patches of a side");
  }
  return position_side / side;
}

void ReadProjector(const VisionFamily& family, ConfigReader* whole, float tower_epsilon,
                   uint32_t merged, uint32_t hidden, VisionSpec* spec) {
  const MergedNorm& norm = family.merged_norm;
  if (norm.name != nullptr && (norm.key == nullptr || whole->Bool(norm.key, true))) {
    spec->projector.norm = norm.name;
    spec->projector.norm_kind = norm.kind;
    spec->projector.has_norm_weights = norm.has_weights;
    spec->projector.norm_offset = norm.offset;
    spec->projector.norm_epsilon =
        norm.epsilon == 0 ? tower_epsilon : static_cast<float>(norm.epsilon);
  }
  uint32_t width = merged;
  for (const ProjectorStage& from : family.projector) {
    if (from.name == nullptr) break;
    DenseSpec stage;
    stage.weight = from.name;
    if (from.width_key != nullptr) {
      width = CountOr(whole, from.width_key, from.default_width);
    } else if (!from.keeps_width) {
      width = hidden;
    }
    stage.width = width;
    stage.has_bias =
        from.has_bias || (from.bias_key != nullptr && whole->Bool(from.bias_key, true));
    stage.is_whole_name = from.is_whole_name;
    stage.is_transposed = from.is_transposed;
    if (from.activation_key != nullptr) {
      stage.activation =
          ActivationOf(whole->String(from.activation_key).value_or(from.default_activation));
      if (!stage.activation) whole->FailKey(from.activation_key, "a known activation");
    } else if (from.default_activation != nullptr) {
      stage.activation = ActivationOf(from.default_activation);
    }
    spec->projector.stages.push_back(stage);
  }
}

// Rows of layers of the tower that are added behind the decoder's first layers. REQUIRES: the
// projector.
void ReadDeepstack(const VisionFamily& family, ConfigReader* reader, uint32_t n_layers,
                   uint32_t n_decoder_layers, VisionSpec* spec) {
  constexpr const char* kKey = "deepstack_visual_indexes";
  const DeepstackNames& names = family.deepstack;
  if (names.list == nullptr) {
    if (!reader->IntOrList(kKey).empty()) reader->FailKey(kKey, "an empty list");
    return;
  }
  std::vector<int64_t> layers(std::begin(family.deepstack_layers),
                              std::end(family.deepstack_layers));
  if (reader->Has(kKey)) layers = reader->IntOrList(kKey);
  if (layers.size() > n_decoder_layers) reader->FailKey(kKey, "as many as the decoder's layers");
  for (size_t i = 0; i < layers.size(); ++i) {
    const bool is_new = std::find(layers.begin(), layers.begin() + static_cast<std::ptrdiff_t>(i),
                                  layers[i]) == layers.begin() + static_cast<std::ptrdiff_t>(i);
    if (layers[i] < 0 || layers[i] >= n_layers || !is_new) {
      reader->FailKey(kKey, Format("different indices below %u", n_layers).c_str());
    }
    const std::string entry = names.list + std::to_string(i) + ".";
    DeepstackSpec deep = {static_cast<uint32_t>(layers[i]), spec->projector};
    deep.projector.norm = entry + names.norm;
    deep.projector.norm_epsilon = 1e-6f;
    deep.projector.stages[0].weight = entry + names.first;
    deep.projector.stages[1].weight = entry + names.second;
    spec->deepstack.push_back(std::move(deep));
  }
  std::sort(spec->deepstack.begin(), spec->deepstack.end(),
            [](const DeepstackSpec& a, const DeepstackSpec& b) { return a.layer < b.layer; });
}

// Also refuses per-layer embeddings of another token than 0 in the places of images.
bool SeesBothWays(const VisionFamily& family, const nlohmann::json& config,
                  const std::string& label) {
  if (family.both_ways_key == nullptr) return family.sees_both_ways;
  ConfigReader text(config.at("text_config"), label + ": text_config");
  if (text.Int("pad_token_id").value_or(0) != 0 &&
      text.Int("hidden_size_per_layer_input").value_or(1) != 0) {
    text.FailKey("pad_token_id", "0, whose per-layer embeddings images have");
  }
  return text.String(family.both_ways_key).value_or("") == "vision";
}

}  // namespace

std::string VisionTensorName(const std::string& name) {
  const std::string model = "model.";
  const std::string bare =
      name.compare(0, model.size(), model) == 0 ? name.substr(model.size()) : name;
  for (const VisionPlace& place : kVisionPlaces) {
    const std::string stored = place.stored;
    if (bare.compare(0, stored.size(), stored) != 0) continue;
    return kVisionPrefix + (place.name + bare.substr(stored.size()));
  }
  return "";
}

std::optional<VisionSpec> ReadVision(const nlohmann::json& config, const std::string& label,
                                     const fs::path& folder, const VisionQuery& query,
                                     std::vector<RopeSpec>* ropes,
                                     std::vector<std::string>* warnings) {
  const VisionFamily* family = FindVisionFamily(config);
  if (family == nullptr) return std::nullopt;
  const ProcessorFile file = LoadProcessor(folder);
  if (file.config.is_null()) {
    warnings->push_back(
        "no preprocessor_config.json, which says how images are prepared: images "
        "are left out");
    return std::nullopt;
  }
  ConfigReader whole(config, label);
  const nlohmann::json no_tower = nlohmann::json::object();
  const nlohmann::json* tower_config = whole.Find("vision_config");
  ConfigReader tower_reader(tower_config == nullptr ? no_tower : *tower_config,
                            label + ": vision_config");
  VisionSpec spec;
  DecoderSpec tower = ReadTower(*family, &tower_reader, &spec);
  spec.merge_side = MergeSide(*family, &whole, &tower_reader, spec.position_side);
  if (family->window_size != 0) {
    const uint32_t token = spec.patch_size * spec.merge_side;
    spec.window_side = CountOr(&tower_reader, "window_size", family->window_size) / token;
    if (spec.window_side == 0) tower_reader.FailKey("window_size", "a token's side at least");
  }
  if (family->mrope != MropeOrder::kNone) {
    RequireEqual(&tower_reader, family->keys.out, query.hidden, query.hidden,
                 "the decoder's hidden_size");
    for (RopeSpec& rope : *ropes) GiveAxes(*family, config, label, &rope);
    spec.has_mrope = true;
  }
  for (LayerKindSpec& kind : tower.kinds) {
    if (!tower.ropes.empty()) kind.rope = static_cast<uint32_t>(ropes->size());
  }
  ropes->insert(ropes->end(), tower.ropes.begin(), tower.ropes.end());
  tower.ropes.clear();
  spec.has_channels_last = family->has_channels_last;
  spec.patch_embedding = family->patch_embedding;
  spec.grid_positions = family->grid_positions;
  spec.merge = family->merge;
  const bool concats = spec.merge == PoolKind::kConcat;
  const uint32_t merged = (concats ? spec.merge_side * spec.merge_side : 1) * tower.hidden;
  if (family->scales_merged) {
    spec.merge_factor = static_cast<float>(std::sqrt(static_cast<double>(tower.hidden)));
  }
  if (family->standardize_key != nullptr && tower_reader.Bool(family->standardize_key, false)) {
    spec.merge_shift = "vision.tower.std_bias";
    spec.merge_scale = "vision.tower.std_scale";
  }
  ReadProjector(*family, &whole, tower.final_norm_epsilon, merged, query.hidden, &spec);
  ReadDeepstack(*family, &tower_reader, static_cast<uint32_t>(tower.layer_kinds.size()),
                query.layers, &spec);
  RefuseUnread(&tower_reader, kSilentTowerKeys);
  ReadImageProcessor(*family, query.max_pixels, file, &spec, warnings);
  spec.token_id = family->default_token;
  for (const char* key : family->token_keys) {
    if (const std::optional<uint32_t> id = whole.Count(key)) spec.token_id = *id;
  }
  if (spec.token_id >= query.vocab) {
    Fail("%s: image_token_id: %u, the vocabulary has %u", label.c_str(), spec.token_id,
         query.vocab);
  }
  spec.text = {family->marker,      family->token,       family->begin,
               family->tile_begin,  family->row_end,     family->tiles_end,
               family->whole_begin, family->alone_begin, family->end};
  spec.sees_both_ways = SeesBothWays(*family, config, label);
  spec.tower = std::make_shared<const DecoderSpec>(std::move(tower));
  return spec;
}

}  // namespace arn::convert
