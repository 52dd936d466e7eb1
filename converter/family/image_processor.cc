#include "converter/family/image_processor.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "converter/hf/json_file.h"

namespace arn::convert {
namespace {

namespace fs = std::filesystem;

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
  if (!family.recentres_pixels) RequireFlag(reader, "do_normalize", true);
  RequireFlag(reader, "do_center_crop", false);
  out->scale = static_cast<float>(reader->Number("rescale_factor").value_or(1.0 / 255));
  ReadChannels(reader, "image_mean", family.mean, out->mean);
  ReadChannels(reader, "image_std", family.deviation, out->std);
  if (family.recentres_pixels) {
    const bool normalizes = reader->Bool("do_normalize", false);
    for (uint32_t c = 0; c < kPixelChannels; ++c) {
      if (!normalizes) out->mean[c] = 0.0f, out->std[c] = 1.0f;
      out->std[c] /= 2;
      out->mean[c] += out->std[c];
    }
  }
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

// An image becomes one tile of at most max_pixels. Sides are rounded to a token's, so that images
// that are much longer than wide, or grow to the least size, may take more than their share.
void ReadPixelBudget(const VisionFamily& family, uint32_t max_pixels, ConfigReader* reader,
                     VisionSpec* spec, std::vector<std::string>* warnings) {
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
  const double side = token, least = rules.min_pixels, most = rules.max_pixels;
  const double longest = std::max(most / side, std::sqrt(kMaxImageAspect * most)) / side;
  const double grown = least / side / side + 2 * std::sqrt(kMaxImageAspect * least) / side + 1;
  const double tokens = std::floor(std::max(longest, grown));
  const double patches = tokens * spec->merge_side * spec->merge_side;
  if (patches > kMaxPatches) {
    reader->FailKey(
        most_key,
        Format("pixels of at most %u patches of %u a side", kMaxPatches, spec->patch_size).c_str());
  }
  spec->max_patches = static_cast<uint32_t>(patches);
  constexpr double kManyTokens = 4096;
  if (tokens <= kManyTokens) return;
  warnings->push_back(
      Format("images of up to %u pixels take up to %.0f tokens, for which an image "
             "encoder reserves memory: --image-pixels lowers both",
             rules.max_pixels, tokens));
}

// An image becomes one tile of as many patches as max_soft_tokens allows.
void ReadPatchBudget(const VisionFamily& family, ConfigReader* reader, VisionSpec* spec) {
  constexpr const char* kKey = "max_soft_tokens";
  constexpr uint32_t kBudgets[] = {70, 140, 280, 560, 1120};
  const uint32_t tokens = CountOr(reader, kKey, family.max_tokens);
  if (std::find(std::begin(kBudgets), std::end(kBudgets), tokens) == std::end(kBudgets)) {
    reader->FailKey(kKey, "70, 140, 280, 560 or 1120");
  }
  reader->MarkRead("size");
  RequireEqual(reader, "patch_size", family.patch_size, spec->patch_size, "the tower's patch_size");
  RequireEqual(reader, family.merge_key, family.default_merge, spec->merge_side,
               "the tower's pooling_kernel_size");
  spec->image.max_tokens = tokens;
  spec->max_patches = tokens * spec->merge_side * spec->merge_side;
  const uint32_t side = tokens * spec->merge_side;
  if (side > spec->stored_positions) {
    reader->FailKey(kKey, Format("at most %u tokens, which the tower has positions for",
                                 spec->stored_positions / spec->merge_side)
                              .c_str());
  }
  spec->position_side = side;
}

void ReadRules(const VisionFamily& family, uint32_t max_pixels, ConfigReader* reader,
               VisionSpec* spec, std::vector<std::string>* warnings) {
  ImageRules& rules = spec->image;
  const uint32_t token = spec->patch_size * spec->merge_side;
  const uint32_t trained = spec->position_side * spec->patch_size;
  rules.rule = family.rule;
  rules.tile_size = family.tile_size;
  if (family.rule == ImageRule::kPatchBudget) return ReadPatchBudget(family, reader, spec);
  if (family.rule == ImageRule::kPixelBudget) {
    return ReadPixelBudget(family, max_pixels, reader, spec, warnings);
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
    case ImageRule::kPixelBudget:
    case ImageRule::kPatchBudget: break;
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

}  // namespace

ProcessorFile LoadProcessor(const std::filesystem::path& folder) {
  const fs::path own = folder / "preprocessor_config.json";
  if (fs::exists(own)) return {LoadJson(own), own.string()};
  const fs::path whole = folder / "processor_config.json";
  if (!fs::exists(whole)) return {};
  const nlohmann::json config = LoadJson(whole);
  const auto at = config.find("image_processor");
  if (at == config.end() || !at->is_object()) return {};
  return {*at, whole.string() + ": image_processor"};
}

void ReadImageProcessor(const VisionFamily& family, uint32_t max_pixels, const ProcessorFile& file,
                        VisionSpec* spec, std::vector<std::string>* warnings) {
  ConfigReader processor(file.config, file.label);
  ReadPixels(family, &processor, &spec->image);
  ReadRules(family, max_pixels, &processor, spec, warnings);
  RefuseUnread(&processor, kSilentProcessorKeys);
}

}  // namespace arn::convert
