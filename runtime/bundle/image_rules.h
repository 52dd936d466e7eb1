// How an image becomes tiles of pixels, as the bundle says it: fields of fbs::Vision that the
// converter writes and the runtime reads.
#pragma once

#include <cstdint>

namespace arn {

enum class ImageRule : uint8_t {
  kSquare = 0,
  kLongestEdge = 1,
  kTokenBudget = 2,
  kPixelBudget = 3,
  kPatchBudget = 4
};
enum class GridPositions : uint8_t { kExact = 0, kBilinear = 1, kCorners = 2, kAxes = 3 };
// By Pillow's numbers.
enum class Resample : uint8_t { kLanczos = 1, kBilinear = 2, kBicubic = 3 };

inline constexpr uint32_t kPixelChannels = 3;
inline constexpr uint32_t kMaxPatches = 1u << 16;  // of a tile
// kPixelBudget: how many times as long as the other a side may be.
inline constexpr uint32_t kMaxImageAspect = 200;

struct ImageRules {
  ImageRule rule = ImageRule::kSquare;
  uint32_t tile_size = 0;  // pixels of a side
  uint32_t longest_edge = 0;
  bool splits = false;
  uint32_t min_tokens = 0, max_tokens = 0;
  uint32_t min_tiles = 0, max_tiles = 0;
  uint32_t min_pixels = 0, max_pixels = 0;
  float tolerance = 0.0f;
  bool has_whole = false;  // the whole image follows its tiles
  Resample resample = Resample::kBilinear;
  float mean[kPixelChannels] = {}, std[kPixelChannels] = {};  // of value * scale
  float scale = 0.0f;

  bool operator==(const ImageRules&) const = default;
};

}  // namespace arn
