#include "converter/family/vision_family.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "converter/base/error.h"
#include "converter/family/families.h"
#include "converter/family/vision_table.h"
#include "converter/hf/config_reader.h"
#include "converter/hf/json_file.h"
#include "kernels/math/rope_frequencies.h"
#include "nlohmann/json.hpp"

namespace arn::convert {
namespace {

namespace fs = std::filesystem;

// kMaxPatches of runtime/model/vision_spec.h.
constexpr uint32_t kMostPatches = 1u << 16;

const VisionFamily* FindVisionFamily(const nlohmann::json& config) {
  const auto names = config.find("architectures");
  if (names == config.end() || !names->is_array() || names->empty()) return nullptr;
  const auto at =
      std::find_if(std::begin(kVisionFamilies), std::end(kVisionFamilies),
                   [&](const VisionFamily& row) { return (*names)[0] == row.architecture; });
  return at == std::end(kVisionFamilies) ? nullptr : at;
}

// An image processor's config. Null: there is no file of one.
struct ProcessorFile {
  nlohmann::json config;
  std::string label;
};

ProcessorFile LoadProcessor(const fs::path& folder) {
  const fs::path own = folder / "preprocessor_config.json";
  if (fs::exists(own)) return {LoadJson(own), own.string()};
  const fs::path whole = folder / "processor_config.json";
  if (!fs::exists(whole)) return {};
  const nlohmann::json config = LoadJson(whole);
  const auto at = config.find("image_processor");
  if (at == config.end() || !at->is_object()) return {};
  return {*at, whole.string() + ": image_processor"};
}

template <size_t kCount>
void RefuseUnread(ConfigReader* reader, const char* const (&silent)[kCount]) {
  for (const char* key : silent) reader->MarkRead(key);
  const std::vector<std::string> unread = reader->Unread();
  if (unread.empty()) return;
  Fail("%s: %s: not supported for images; --no-images converts the text decoder alone",
       reader->label().c_str(), unread[0].c_str());
}

uint32_t CountOr(ConfigReader* reader, const char* key, uint32_t fallback) {
  return reader->Count(key).value_or(fallback);
}

// The side of a square of n.
uint32_t SideOf(ConfigReader* reader, const char* key, uint32_t n) {
  const auto side = static_cast<uint32_t>(std::lround(std::sqrt(static_cast<double>(n))));
  if (side * side != n) reader->FailKey(key, "a square");
  return side;
}

// A flag whose other value would change pixels.
void RequireFlag(ConfigReader* reader, const char* key, bool wanted) {
  if (reader->Bool(key, wanted) != wanted) reader->FailKey(key, wanted ? "true" : "false or null");
}

void ReadChannels(ConfigReader* reader, const char* key, const float* fallback, float* out) {
  std::copy(fallback, fallback + kPixelChannels, out);
  const nlohmann::json* values = reader->Find(key);
  if (values == nullptr) return;
  const bool is_list = values->is_array() && values->size() == kPixelChannels;
  if (!is_list || !std::all_of(values->begin(), values->end(),
                               [](const nlohmann::json& value) { return value.is_number(); })) {
    reader->FailKey(key, "three numbers");
  }
  for (uint32_t c = 0; c < kPixelChannels; ++c) out[c] = (*values)[c].get<float>();
}

void ReadPixels(const VisionFamily& family, ConfigReader* reader, ImageRules* out) {
  RequireFlag(reader, "do_resize", true);
  RequireFlag(reader, "do_rescale", true);
  RequireFlag(reader, "do_normalize", true);
  RequireFlag(reader, "do_center_crop", false);
  out->scale = static_cast<float>(reader->Number("rescale_factor").value_or(1.0 / 255));
  ReadChannels(reader, "image_mean", family.mean, out->mean);
  ReadChannels(reader, "image_std", family.deviation, out->std);
  out->resample = family.resample;
  if (const std::optional<int64_t> filter = reader->Int("resample")) {
    if (*filter < 1 || *filter > 3) reader->FailKey("resample", "1 to 3");
    out->resample = static_cast<Resample>(*filter);
  }
}

// An object's key, as "size" has.
uint32_t InnerCount(ConfigReader* reader, const char* key, const char* inner, uint32_t fallback) {
  const nlohmann::json* object = reader->Find(key);
  if (object == nullptr) return fallback;
  if (!object->is_object()) reader->FailKey(key, "an object");
  ConfigReader own(*object, reader->label() + ": " + key);
  const uint32_t count = own.RequiredCount(inner);
  return count;
}

void RequireEqual(ConfigReader* reader, const char* key, uint32_t fallback, uint32_t wanted,
                  const char* what) {
  if (CountOr(reader, key, fallback) != wanted) reader->FailKey(key, what);
}

// An image becomes one tile of at most max_pixels. Sides are rounded to a token's, so that images
// that are much longer than wide, or grow to the least size, may take more than their share.
void ReadPixelBudget(const VisionFamily& family, uint32_t max_pixels, ConfigReader* reader,
                     VisionSpec* spec) {
  ImageRules& rules = spec->image;
  rules.min_pixels = InnerCount(reader, "size", "shortest_edge", family.min_pixels);
  rules.max_pixels = InnerCount(reader, "size", "longest_edge", family.max_pixels);
  rules.min_pixels = CountOr(reader, "min_pixels", rules.min_pixels);
  rules.max_pixels = CountOr(reader, "max_pixels", rules.max_pixels);
  if (max_pixels != 0) {
    rules.max_pixels = max_pixels;
    rules.min_pixels = std::min(rules.min_pixels, max_pixels);
  }
  RequireEqual(reader, "patch_size", 14, spec->patch_size, "the tower's patch_size");
  RequireEqual(reader, "temporal_patch_size", 2, spec->frames, "the tower's temporal_patch_size");
  RequireEqual(reader, "merge_size", 2, spec->merge_side, "the tower's spatial_merge_size");
  const char* least_key = reader->Find("min_pixels") != nullptr ? "min_pixels" : "size";
  const char* most_key = reader->Find("max_pixels") != nullptr ? "max_pixels" : "size";
  const uint32_t token = spec->patch_size * spec->merge_side;
  if (rules.min_pixels == 0 || rules.min_pixels > rules.max_pixels) {
    reader->FailKey(least_key,
                    Format("1 to %u, the most pixels of an image", rules.max_pixels).c_str());
  }
  if (rules.max_pixels < token * token) {
    reader->FailKey(most_key,
                    Format("at least %u pixels, those of a token", token * token).c_str());
  }
  constexpr double kMostAspect = 200;
  const double side = token, least = rules.min_pixels, most = rules.max_pixels;
  const double longest = std::max(most / side, std::sqrt(kMostAspect * most)) / side;
  const double grown = least / side / side + 2 * std::sqrt(kMostAspect * least) / side + 1;
  const double tokens = std::floor(std::max(longest, grown));
  const double patches = tokens * spec->merge_side * spec->merge_side;
  if (patches > kMostPatches) {
    reader->FailKey(most_key, Format("pixels of at most %u patches of %u a side", kMostPatches,
                                     spec->patch_size)
                                  .c_str());
  }
  spec->max_patches = static_cast<uint32_t>(patches);
}

void ReadRules(const VisionFamily& family, uint32_t max_pixels, ConfigReader* reader,
               VisionSpec* spec) {
  ImageRules& rules = spec->image;
  const uint32_t token = spec->patch_size * spec->merge_side;
  const uint32_t trained = spec->position_side * spec->patch_size;
  rules.rule = family.rule;
  rules.tile_size = family.tile_size;
  if (family.rule == ImageRule::kPixelBudget) {
    return ReadPixelBudget(family, max_pixels, reader, spec);
  }
  switch (family.rule) {
    case ImageRule::kSquare: {
      RequireFlag(reader, "do_pan_and_scan", false);
      for (const char* key : {"pan_and_scan_min_crop_size", "pan_and_scan_max_num_crops",
                              "pan_and_scan_min_ratio_to_activate"}) {
        reader->MarkRead(key);
      }
      rules.tile_size = InnerCount(reader, "size", "height", family.tile_size);
      const uint32_t width = InnerCount(reader, "size", "width", family.tile_size);
      if (rules.tile_size != trained || width != trained) {
        reader->FailKey("size", Format("height and width %u, as the tower's", trained).c_str());
      }
      break;
    }
    case ImageRule::kLongestEdge:
      rules.splits = reader->Bool("do_image_splitting", true);
      rules.has_whole = true;
      rules.longest_edge = InnerCount(reader, "size", "longest_edge", family.longest_edge);
      rules.tile_size = InnerCount(reader, "max_image_size", "longest_edge", family.tile_size);
      if (rules.tile_size != trained) {
        reader->FailKey("max_image_size",
                        Format("longest_edge %u, as the tower's", trained).c_str());
      }
      break;
    case ImageRule::kTokenBudget:
      reader->MarkRead("size");
      rules.splits = reader->Bool("do_image_splitting", true);
      rules.has_whole = reader->Bool("use_thumbnail", true);
      rules.min_tokens = CountOr(reader, "min_image_tokens", 64);
      rules.max_tokens = CountOr(reader, "max_image_tokens", 256);
      rules.min_tiles = CountOr(reader, "min_tiles", 2);
      rules.max_tiles = CountOr(reader, "max_tiles", 10);
      rules.tile_size = CountOr(reader, "tile_size", family.tile_size);
      rules.tolerance = static_cast<float>(reader->Number("max_pixels_tolerance").value_or(2.0));
      if (CountOr(reader, "encoder_patch_size", 16) != spec->patch_size) {
        reader->FailKey("encoder_patch_size", "the tower's patch_size");
      }
      if (CountOr(reader, "downsample_factor", 2) != spec->merge_side) {
        reader->FailKey("downsample_factor", "the model's downsample_factor");
      }
      if (rules.min_tokens > rules.max_tokens) {
        reader->FailKey("min_image_tokens", "at most max_image_tokens");
      }
      if (rules.splits && (rules.min_tiles < 2 || rules.min_tiles > rules.max_tiles)) {
        reader->FailKey("min_tiles", "2 to max_tiles");
      }
      break;
    case ImageRule::kPixelBudget: break;
  }
  if (rules.tile_size % token != 0) {
    Fail("%s: tiles of %u pixels are not a multiple of %u, a token's side", reader->label().c_str(),
         rules.tile_size, token);
  }
  const uint32_t side = rules.tile_size / spec->patch_size;
  spec->max_patches = side * side;
  if (family.rule != ImageRule::kTokenBudget) return;
  const uint32_t budget = rules.max_tokens * spec->merge_side * spec->merge_side;
  spec->max_patches = rules.splits ? std::max(budget, side * side) : budget;
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

// Time, row and column take turns, until each has its number of pairs; time has the rest
// (apply_interleaved_mrope in transformers' modeling_qwen3_vl.py).
void GiveAxes(ConfigReader* whole, RopeSpec* rope) {
  std::vector<int64_t> sections = {11, 11, 10};
  if (const nlohmann::json* text = whole->Find("text_config")) {
    ConfigReader reader(*text, whole->label() + ": text_config");
    for (const char* key : {"rope_scaling", "rope_parameters"}) {
      const nlohmann::json* parameters = reader.Find(key);
      if (parameters == nullptr || !parameters->is_object()) continue;
      ConfigReader inner(*parameters, reader.label() + ": " + key);
      if (parameters->contains("mrope_section")) sections = inner.IntOrList("mrope_section");
      if (sections.size() != kRopeAxes) inner.FailKey("mrope_section", "three numbers");
    }
  }
  rope->axes.assign(rope->rotary_dim / 2, 0);
  for (uint32_t i = 0; i < rope->axes.size(); ++i) {
    const uint32_t axis = i % kRopeAxes;
    if (axis != 0 && i < kRopeAxes * sections[axis]) rope->axes[i] = static_cast<uint8_t>(axis);
  }
}

// The tower's layers, in a decoder's fields.
DecoderSpec ReadTower(const VisionFamily& family, ConfigReader* reader, VisionSpec* spec) {
  DecoderSpec tower;
  tower.architecture = family.architecture;
  tower.names = family.names;
  tower.hidden = CountOr(reader, "hidden_size", family.hidden);
  LayerKindSpec kind;
  kind.n_heads = kind.n_kv_heads = CountOr(reader, family.keys.heads, family.heads);
  if (tower.hidden % kind.n_heads != 0) {
    reader->FailKey(family.keys.heads, "a divisor of hidden_size");
  }
  kind.head_dim = tower.hidden / kind.n_heads;
  kind.attention_scale = 1.0f / std::sqrt(static_cast<float>(kind.head_dim));
  kind.rope = kNoRope;
  kind.ffn_dim = CountOr(reader, "intermediate_size", family.ffn);
  kind.norm = NormKind::kLayer;
  kind.norm_epsilon = static_cast<float>(reader->Number("layer_norm_eps").value_or(1e-6));
  const std::string name = reader->String("hidden_act").value_or("gelu_pytorch_tanh");
  const std::optional<Activation> activation = ActivationOf(name);
  if (!activation) reader->FailKey("hidden_act", "a known activation");
  kind.activation = *activation;
  kind.is_gated = false;
  kind.has_qkv_bias = kind.has_attention_out_bias = kind.has_mlp_bias = true;
  tower.kinds = {kind};
  tower.layer_kinds.assign(CountOr(reader, family.keys.layers, family.layers), 0);
  tower.final_norm_kind = NormKind::kLayer;
  tower.final_norm_epsilon = kind.norm_epsilon;
  RequireEqual(reader, family.keys.channels, kPixelChannels, kPixelChannels, "3");
  if (family.frames != 0) spec->frames = CountOr(reader, "temporal_patch_size", family.frames);
  if (family.rope_theta != 0) {
    if (kind.head_dim % 4 != 0) reader->FailKey(family.keys.heads, "heads of a multiple of 4");
    tower.ropes.push_back(TowerRope(family.rope_theta, kind.head_dim));
  }
  spec->patch_size = CountOr(reader, "patch_size", family.patch_size);
  if (family.image_size != 0) {
    const uint32_t image = CountOr(reader, "image_size", family.image_size);
    if (image % spec->patch_size != 0) reader->FailKey("image_size", "a multiple of patch_size");
    spec->position_side = image / spec->patch_size;
  } else {
    const uint32_t n = CountOr(reader, family.keys.positions, family.n_positions);
    spec->position_side = SideOf(reader, family.keys.positions, n);
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
    spec->merged_norm = norm.name;
    spec->merged_norm_kind = norm.kind;
    spec->merged_norm_offset = norm.offset;
    spec->merged_norm_epsilon =
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
    spec->projector.push_back(stage);
  }
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
  // Refuses towers whose layers' outputs also go to the decoder's first layers.
  if (!tower_reader.IntOrList("deepstack_visual_indexes").empty()) {
    tower_reader.FailKey("deepstack_visual_indexes", "an empty list");
  }
  if (family->mrope != MropeOrder::kNone) {
    RequireEqual(&tower_reader, "out_hidden_size", query.hidden, query.hidden,
                 "the decoder's hidden_size");
    for (RopeSpec& rope : *ropes) GiveAxes(&whole, &rope);
    spec.has_mrope = true;
  }
  for (LayerKindSpec& kind : tower.kinds) {
    if (!tower.ropes.empty()) kind.rope = static_cast<uint32_t>(ropes->size());
  }
  ropes->insert(ropes->end(), tower.ropes.begin(), tower.ropes.end());
  tower.ropes.clear();
  RefuseUnread(&tower_reader, kSilentTowerKeys);
  spec.has_channels_last = family->has_channels_last;
  spec.patch_embedding = family->patch_embedding;
  spec.positions = family->positions;
  spec.grid_positions = family->grid_positions;
  spec.merge = family->merge;
  const bool concats = spec.merge == PoolKind::kConcat;
  const uint32_t merged = (concats ? spec.merge_side * spec.merge_side : 1) * tower.hidden;
  ReadProjector(*family, &whole, tower.final_norm_epsilon, merged, query.hidden, &spec);
  ConfigReader processor(file.config, file.label);
  ReadPixels(*family, &processor, &spec.image);
  ReadRules(*family, query.max_pixels, &processor, &spec);
  RefuseUnread(&processor, kSilentProcessorKeys);
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
  spec.sees_both_ways = family->sees_both_ways;
  spec.tower = std::make_shared<const DecoderSpec>(std::move(tower));
  return spec;
}

}  // namespace arn::convert
