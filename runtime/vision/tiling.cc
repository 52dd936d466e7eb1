#include "runtime/vision/tiling.h"

#include <cmath>

#include "platform/base/arith.h"

namespace arn {
namespace {

// Idefics3's bound of a side.
constexpr uint32_t kLongestSide = 4096;

uint32_t RoundedUp(uint32_t n, uint32_t unit) {
  return static_cast<uint32_t>(CeilDiv(n, unit)) * unit;
}

// Python's round(n / unit) * unit: halves go to the even number.
uint32_t RoundedTo(uint32_t n, uint32_t unit) {
  return static_cast<uint32_t>(std::rint(static_cast<double>(n) / unit)) * unit;
}

double AspectOf(ImageSize image) { return static_cast<double>(image.width) / image.height; }

uint32_t EvenUp(uint32_t n) { return n + n % 2; }

// Makes the longer side `longest` and the other one even; then bounds both.
ImageSize ToLongestEdge(ImageSize image, uint32_t longest) {
  const double aspect = AspectOf(image);
  ImageSize out = {longest, longest};
  if (image.width >= image.height) {
    out.height = EvenUp(static_cast<uint32_t>(longest / aspect));
  } else {
    out.width = EvenUp(static_cast<uint32_t>(longest * aspect));
  }
  out = {Max(out.width, 1u), Max(out.height, 1u)};
  const double second = AspectOf(out);
  if (out.width >= out.height && out.width > kLongestSide) {
    out = {kLongestSide, static_cast<uint32_t>(kLongestSide / second)};
  } else if (out.height > out.width && out.height > kLongestSide) {
    out = {static_cast<uint32_t>(kLongestSide * second), kLongestSide};
  }
  return {Max(out.width, 1u), Max(out.height, 1u)};
}

// Makes both sides multiples of the tile.
ImageSize ToTiles(ImageSize image, uint32_t tile) {
  const double aspect = AspectOf(image);
  ImageSize out;
  if (image.width >= image.height) {
    out.width = RoundedUp(image.width, tile);
    out.height = RoundedUp(static_cast<uint32_t>(out.width / aspect), tile);
  } else {
    out.height = RoundedUp(image.height, tile);
    out.width = RoundedUp(static_cast<uint32_t>(out.height * aspect), tile);
  }
  // Less than a pixel may be left of an image of one row or column.
  return {Max(out.width, tile), Max(out.height, tile)};
}

Tiling ByLongestEdge(const ImageRules& rules, ImageSize image) {
  Tiling out;
  out.first = ToLongestEdge(image, rules.longest_edge);
  out.whole = {rules.tile_size, rules.tile_size};
  if (!rules.splits) return out;
  const ImageSize grid = ToTiles(out.first, rules.tile_size);
  if (grid == out.whole) return out;
  out.grid = grid;
  out.rows = grid.height / rules.tile_size;
  out.cols = grid.width / rules.tile_size;
  return out;
}

// Makes both sides multiples of a token's, with `least` to `most` pixels in all, beginning with
// sides of at least `shortest`.
ImageSize ToBudget(uint64_t least, uint64_t most, uint32_t token, uint32_t shortest,
                   ImageSize image) {
  const ImageSize out = {Max(shortest, RoundedTo(image.width, token)),
                         Max(shortest, RoundedTo(image.height, token))};
  const uint64_t area = uint64_t{out.width} * out.height;
  const double pixels = static_cast<double>(image.width) * image.height;
  if (area > most) {
    const double shrink = std::sqrt(pixels / static_cast<double>(most));
    const auto shrunk = [&](uint32_t side) {
      return Max(token, static_cast<uint32_t>(std::floor(side / shrink / token)) * token);
    };
    return {shrunk(image.width), shrunk(image.height)};
  }
  if (area < least) {
    const double grow = std::sqrt(static_cast<double>(least) / pixels);
    const auto grown = [&](uint32_t side) {
      return static_cast<uint32_t>(std::ceil(side * grow / token)) * token;
    };
    return {grown(image.width), grown(image.height)};
  }
  return out;
}

ImageSize ToTokens(const ImageRules& rules, uint32_t token, ImageSize image) {
  const uint64_t token_area = uint64_t{token} * token;
  return ToBudget(rules.min_tokens * token_area, rules.max_tokens * token_area, token, token,
                  image);
}

// The grid whose shape is closest to the image's; of equally close ones the largest that the image
// fills by more than half.
void ChooseGrid(const ImageRules& rules, ImageSize image, Tiling* out) {
  const double aspect = AspectOf(image);
  const double area = static_cast<double>(image.width) * image.height;
  const double tile_area = static_cast<double>(rules.tile_size) * rules.tile_size;
  double best = HUGE_VAL;
  out->rows = out->cols = 1;
  for (uint32_t n = rules.min_tiles; n <= rules.max_tiles; ++n) {
    for (uint32_t cols = 1; cols <= n; ++cols) {
      if (n % cols != 0) continue;
      const uint32_t rows = n / cols;
      const double difference = std::fabs(aspect - static_cast<double>(cols) / rows);
      if (difference > best || (difference == best && !(area > 0.5 * tile_area * n))) continue;
      best = difference;
      out->rows = rows;
      out->cols = cols;
    }
  }
}

bool IsTooLarge(const VisionSpec& vision, ImageSize image) {
  const uint32_t token = vision.token_size(), patch = vision.patch_size;
  const double area = static_cast<double>(Max(patch, RoundedTo(image.width, token))) *
                      Max(patch, RoundedTo(image.height, token));
  const double token_area = static_cast<double>(token) * token;
  return area > vision.image.max_tokens * token_area * static_cast<double>(vision.image.tolerance);
}

Tiling ByTokenBudget(const VisionSpec& vision, ImageSize image) {
  const ImageRules& rules = vision.image;
  Tiling out;
  out.whole = ToTokens(rules, vision.token_size(), image);
  if (!rules.splits || !IsTooLarge(vision, image)) return out;
  ChooseGrid(rules, image, &out);
  out.grid = {out.cols * rules.tile_size, out.rows * rules.tile_size};
  if (!rules.has_whole || out.n_grid_tiles() == 1) out.whole = {};
  return out;
}

// As smart_resize in transformers' image processors.
Tiling ByPixelBudget(const VisionSpec& vision, ImageSize image) {
  const ImageRules& rules = vision.image;
  Tiling out;
  const uint32_t longer = Max(image.width, image.height), shorter = Min(image.width, image.height);
  if (longer > kMaxImageAspect * uint64_t{shorter}) return out;
  out.whole = ToBudget(rules.min_pixels, rules.max_pixels, vision.token_size(), 0, image);
  return out;
}

// The largest size of the image's shape within the budget, sides rounded down to a token's
// (get_aspect_ratio_preserving_size in transformers' image processors).
Tiling ByPatchBudget(const VisionSpec& vision, ImageSize image) {
  const uint32_t token = vision.token_size(), most = vision.image.max_tokens;
  const double width = image.width, height = image.height;
  const double target = static_cast<double>(uint64_t{most} * token * token);
  const double factor = std::sqrt(target / (width * height));
  uint32_t rows = static_cast<uint32_t>(std::floor(factor * height / token));
  uint32_t cols = static_cast<uint32_t>(std::floor(factor * width / token));
  if (rows == 0) {
    rows = 1;
    cols = static_cast<uint32_t>(Min(std::floor(width / height), static_cast<double>(most)));
  } else if (cols == 0) {
    cols = 1;
    rows = static_cast<uint32_t>(Min(std::floor(height / width), static_cast<double>(most)));
  }
  Tiling out;
  out.whole = {cols * token, rows * token};
  return out;
}

}  // namespace

Tiling TilingOf(const VisionSpec& vision, ImageSize image) {
  const ImageRules& rules = vision.image;
  if (rules.rule == ImageRule::kLongestEdge) return ByLongestEdge(rules, image);
  if (rules.rule == ImageRule::kTokenBudget) return ByTokenBudget(vision, image);
  if (rules.rule == ImageRule::kPixelBudget) return ByPixelBudget(vision, image);
  if (rules.rule == ImageRule::kPatchBudget) return ByPatchBudget(vision, image);
  Tiling out;
  out.whole = {rules.tile_size, rules.tile_size};
  return out;
}

uint32_t TileTokens(const VisionSpec& vision, ImageSize tile) {
  return (tile.width / vision.token_size()) * (tile.height / vision.token_size());
}

uint32_t ImageTokens(const VisionSpec& vision, const Tiling& tiling) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < tiling.n_tiles(); ++i) n += TileTokens(vision, tiling.TileSize(i));
  return n;
}

uint32_t MostPatches(const VisionSpec& vision, uint32_t max_side) {
  const ImageRules& rules = vision.image;
  if (rules.rule != ImageRule::kPixelBudget) return vision.max_patches;
  const auto token = static_cast<double>(vision.token_size());
  const double side = max_side + token;
  // Images with fewer pixels than these grow to them. The sum of the sides is the largest where
  // the image is the longest, and each is rounded up.
  const double least = rules.min_pixels, root = std::sqrt(least);
  const double sides = root * (std::sqrt(kMaxImageAspect) + 1);
  const double grown = least + token * sides + token * token;
  const double patch_area = static_cast<double>(vision.patch_size) * vision.patch_size;
  const double most = Max(side * side, grown) / patch_area;
  if (most >= vision.max_patches) return vision.max_patches;
  const uint32_t merged = vision.merged_patches();
  return Max(static_cast<uint32_t>(most) / merged, 1u) * merged;
}

TilingBounds BoundsOf(const VisionSpec& vision) {
  const ImageRules& rules = vision.image;
  const uint32_t tile = rules.tile_size, token = vision.token_size();
  const uint32_t a_tile = TileTokens(vision, {tile, tile});
  TilingBounds out;
  switch (rules.rule) {
    case ImageRule::kSquare:
      out.longest_side = tile;
      out.whole_bytes = ImageSize{tile, tile}.bytes();
      out.most_tokens = a_tile;
      break;
    case ImageRule::kLongestEdge: {
      const uint32_t first = Min(rules.longest_edge, kLongestSide) + 1;
      const uint32_t grid = rules.splits ? RoundedUp(first, tile) : 0;
      out.longest_side = Max(Max(first, grid), tile);
      out.whole_bytes = Max(ImageSize{first, first}.bytes(), ImageSize{tile, tile}.bytes());
      out.grid_bytes = Max(ImageSize{grid, grid}.bytes(), ImageSize{tile, tile}.bytes());
      out.most_tokens = a_tile * ((grid / tile) * (grid / tile) + 1);
      break;
    }
    case ImageRule::kTokenBudget: {
      const uint64_t whole = uint64_t{rules.max_tokens} * token * token;
      out.longest_side = Max(rules.max_tokens * token, rules.max_tiles * tile);
      out.whole_bytes = kPixelChannels * whole;
      out.grid_bytes = uint64_t{kPixelChannels} * rules.max_tiles * tile * tile;
      out.most_tokens = rules.max_tokens + rules.max_tiles * a_tile;
      break;
    }
    case ImageRule::kPatchBudget:
      out.longest_side = rules.max_tokens * token;
      out.whole_bytes = kPixelChannels * uint64_t{rules.max_tokens} * token * token;
      out.most_tokens = rules.max_tokens;
      break;
    case ImageRule::kPixelBudget: {
      // Rounding a side up, in a growing image, may take it over its share.
      const double side = std::sqrt(static_cast<double>(kMaxImageAspect) * rules.max_pixels);
      out.longest_side = static_cast<uint32_t>(side) + 2 * token;
      out.whole_bytes =
          kPixelChannels * uint64_t{vision.max_patches} * vision.patch_size * vision.patch_size;
      out.most_tokens = vision.max_patches / vision.merged_patches();
      break;
    }
  }
  return out;
}

}  // namespace arn
