// Resizing, tiling and patches, against torchvision and transformers' image processors
// (data/make_vision_cases.py), and what they refuse.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <vector>

#include "nlohmann/json.hpp"
#include "runtime/vision/image_encoder.h"
#include "runtime/vision/image_text.h"
#include "runtime/vision/patches.h"
#include "runtime/vision/resample.h"
#include "runtime/vision/tiling.h"

namespace arn {
namespace {

const nlohmann::json& Cases() {
  static const nlohmann::json cases = nlohmann::json::parse(std::ifstream(ARN_VISION_CASES));
  return cases;
}

std::vector<uint8_t> TestImage(uint32_t width, uint32_t height) {
  std::vector<uint8_t> pixels;
  for (uint32_t y = 0; y < height; ++y) {
    for (uint32_t x = 0; x < width; ++x) {
      for (uint32_t c = 0; c < 3; ++c) {
        pixels.push_back(static_cast<uint8_t>((x * (3 + c) + y * (5 - c) + ((x * y) >> 3)) & 255));
      }
    }
  }
  return pixels;
}

TEST(Resample, Goldens_AreTorchvisions) {
  for (const nlohmann::json& one : Cases().at("resize")) {
    SCOPED_TRACE(one.at("in").dump() + " to " + one.at("out").dump() + " by filter " +
                 one.at("filter").dump());
    const uint32_t width = one["in"][0], height = one["in"][1];
    const ImageSize size = {one["out"][0], one["out"][1]};
    const std::vector<uint8_t> in = TestImage(width, height);
    // The smallest memory that is enough.
    const uint32_t most_in = std::max(width, height), most_out = std::max(size.width, size.height);
    std::vector<std::byte> memory(Resizer::Bytes(most_in, most_out) + 64);
    Resizer resizer(most_in, most_out, {memory.data(), memory.size() - 64});
    std::vector<uint8_t> out(size.bytes());
    resizer.Resize({in.data(), width, height, uint64_t{3} * width}, size,
                   static_cast<Resample>(one["filter"].get<int>()), out.data());
    const std::vector<int> expected = one["pixels"];
    const size_t every = one["every"];
    size_t n_off = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
      if (expected[i] == out[i * every]) continue;
      ++n_off;
      EXPECT_NEAR(expected[i], out[i * every], 1) << "value " << i * every;
    }
    // Sums of doubles may be rounded another way on another CPU.
    EXPECT_LE(n_off, expected.size() / 500);
  }
}

TEST(Resample, PartOfAnImage_IsReadByItsStride) {
  const std::vector<uint8_t> whole = TestImage(40, 30);
  std::vector<uint8_t> part;
  for (uint32_t y = 5; y < 25; ++y) {
    const uint8_t* row = whole.data() + (y * 40 + 10) * 3;
    part.insert(part.end(), row, row + 20 * 3);
  }
  std::vector<std::byte> memory(Resizer::Bytes(64, 64));
  Resizer resizer(64, 64, {memory.data(), memory.size()});
  std::vector<uint8_t> a(13 * 9 * 3), b(a.size());
  resizer.Resize({whole.data() + (5 * 40 + 10) * 3, 20, 20, 40 * 3}, {13, 9}, Resample::kBicubic,
                 a.data());
  resizer.Resize({part.data(), 20, 20, 20 * 3}, {13, 9}, Resample::kBicubic, b.data());
  EXPECT_EQ(b, a);
}

VisionSpec LongestEdge(uint32_t edge, uint32_t tile, uint32_t patch) {
  VisionSpec vision;
  vision.hidden = 8;
  vision.patch_size = patch;
  vision.max_patches = (tile / patch) * (tile / patch);
  vision.image.rule = ImageRule::kLongestEdge;
  vision.image.longest_edge = edge;
  vision.image.tile_size = tile;
  vision.image.splits = true;
  return vision;
}

VisionSpec Lfm2Vl() {
  VisionSpec vision;
  vision.hidden = 8;
  vision.patch_size = 16;
  vision.merge_side = 2;
  vision.max_patches = 1024;
  vision.image.rule = ImageRule::kTokenBudget;
  vision.image.tile_size = 512;
  vision.image.splits = vision.image.has_whole = true;
  vision.image.min_tokens = 64;
  vision.image.max_tokens = 256;
  vision.image.min_tiles = 2;
  vision.image.max_tiles = 10;
  vision.image.tolerance = 2.0f;
  return vision;
}

VisionSpec PixelBudget(uint32_t min_pixels, uint32_t max_pixels) {
  VisionSpec vision;
  vision.hidden = 8;
  vision.patch_size = 16;
  vision.merge_side = 2;
  vision.max_patches = kMaxPatches;
  vision.image.rule = ImageRule::kPixelBudget;
  vision.image.min_pixels = min_pixels;
  vision.image.max_pixels = max_pixels;
  return vision;
}

VisionSpec PatchBudget(uint32_t max_tokens) {
  VisionSpec vision;
  vision.hidden = 8;
  vision.patch_size = 16;
  vision.merge_side = 3;
  vision.max_patches = 9 * max_tokens;
  vision.image.rule = ImageRule::kPatchBudget;
  vision.image.max_tokens = max_tokens;
  return vision;
}

// One tile, or none for an image that is too long.
void ExpectOneTile(const nlohmann::json& one, const char* name, const VisionSpec& vision,
                   ImageSize image) {
  SCOPED_TRACE(name);
  const Tiling tiling = TilingOf(vision, image);
  EXPECT_EQ(0u, tiling.n_grid_tiles());
  EXPECT_EQ(one.contains(name), tiling.whole.exists());
  if (!one.contains(name)) return;
  EXPECT_EQ(one[name][0].get<uint32_t>(), tiling.whole.width);
  EXPECT_EQ(one[name][1].get<uint32_t>(), tiling.whole.height);
  EXPECT_LE(std::max(tiling.whole.width, tiling.whole.height), BoundsOf(vision).longest_side);
  const uint32_t patches =
      tiling.whole.width / vision.patch_size * (tiling.whole.height / vision.patch_size);
  EXPECT_LE(patches, MostPatches(vision, std::max(image.width, image.height)));
}

TEST(Tiling, Goldens_AreTheImageProcessors) {
  const struct {
    const char* name;
    VisionSpec vision;
  } rules[] = {{"smolvlm", LongestEdge(2048, 512, 16)},
               {"idefics3", LongestEdge(4 * 364, 364, 14)},
               {"odd", LongestEdge(71, 32, 4)}};
  for (const nlohmann::json& one : Cases().at("tile")) {
    SCOPED_TRACE(one.at("image").dump());
    const ImageSize image = {one["image"][0], one["image"][1]};
    for (const auto& rule : rules) {
      SCOPED_TRACE(rule.name);
      const Tiling tiling = TilingOf(rule.vision, image);
      EXPECT_EQ(one[rule.name][0].get<uint32_t>(), tiling.rows);
      EXPECT_EQ(one[rule.name][1].get<uint32_t>(), tiling.cols);
      EXPECT_TRUE(tiling.whole.exists());
      EXPECT_LE(ImageTokens(rule.vision, tiling), BoundsOf(rule.vision).most_tokens);
      EXPECT_LE(std::max(tiling.first.width, tiling.grid.width),
                BoundsOf(rule.vision).longest_side);
    }
    ExpectOneTile(one, "qwen", PixelBudget(65536, 1048576), image);
    ExpectOneTile(one, "qwen_small", PixelBudget(3000, 5000), image);
    for (const auto& [name, tokens] : {std::pair("gemma4", 280u), std::pair("gemma4_small", 70u)}) {
      const VisionSpec vision = PatchBudget(tokens);
      ExpectOneTile(one, name, vision, image);
      EXPECT_LE(ImageTokens(vision, TilingOf(vision, image)), BoundsOf(vision).most_tokens);
    }
    if (!one.contains("lfm2_vl")) continue;
    const VisionSpec vision = Lfm2Vl();
    const Tiling tiling = TilingOf(vision, image);
    const std::vector<uint32_t> expected = one["lfm2_vl"];  // rows and columns, 1 if not cut
    EXPECT_EQ(expected[0], std::max(tiling.rows, 1u));
    EXPECT_EQ(expected[1], std::max(tiling.cols, 1u));
    EXPECT_EQ(expected[2], tiling.whole.width);
    EXPECT_EQ(expected[3], tiling.whole.height);
    EXPECT_LE(ImageTokens(vision, tiling), BoundsOf(vision).most_tokens);
  }
}

// Of every shape, also those that grow to the least pixels.
TEST(Tiling, MostPatches_AreThoseOfNoImageOrMore) {
  const VisionSpec vision = PixelBudget(3000, 1048576);
  for (const uint32_t max_side : {1u, 7u, 20u, 55u, 200u, 1000u}) {
    const uint32_t most = MostPatches(vision, max_side);
    EXPECT_EQ(0u, most % vision.merged_patches());
    for (uint32_t side = 1; side <= max_side; side += 1 + side / 16) {
      for (const ImageSize image : {ImageSize{max_side, side}, ImageSize{side, max_side}}) {
        const ImageSize whole = TilingOf(vision, image).whole;
        const uint32_t patches =
            whole.width / vision.patch_size * (whole.height / vision.patch_size);
        ASSERT_LE(patches, most) << image.width << " x " << image.height;
      }
    }
  }
  EXPECT_LT(MostPatches(vision, 200), 400u);
  EXPECT_EQ(vision.max_patches, MostPatches(vision, 8192));
  const VisionSpec fills = PatchBudget(70);
  EXPECT_EQ(fills.max_patches, MostPatches(fills, 1));
}

TEST(Tiling, ImagesThatTheTowerDoesNotTake_AreRefusedWithTheirSize) {
  Diag diag;
  Tiling tiling;
  const VisionSpec vision = Lfm2Vl();
  EXPECT_EQ(Status::kBadArgument, MeasureImage(vision, {0, 5}, &tiling, &diag));
  EXPECT_EQ(Status::kBadArgument, MeasureImage(vision, {5, 40000}, &tiling, &diag));
  EXPECT_EQ(Status::kBadArgument, MeasureImage(vision, {20000, 1}, &tiling, &diag));
  EXPECT_NE(nullptr, std::strstr(diag.text(), "20000 x 1")) << diag.text();
  EXPECT_EQ(Status::kOk, MeasureImage(vision, {1000, 3}, &tiling, &diag)) << diag.text();
}

TEST(Patches, PixelsAndOrder_EqualTheFormula) {
  VisionSpec vision;
  vision.hidden = 3;
  vision.patch_size = 2;
  vision.merge_side = 2;
  vision.position_side = 4;
  vision.image.scale = 1.0f / 255;
  for (uint32_t c = 0; c < 3; ++c) {
    vision.image.mean[c] = 0.1f * static_cast<float>(c);
    vision.image.std[c] = 0.5f + 0.1f * static_cast<float>(c);
  }
  const std::vector<uint8_t> image = TestImage(8, 4);
  const uint32_t stride = vision.patch_row_floats();
  ASSERT_EQ(15u, stride);
  std::vector<float> rows(8 * stride);
  WritePixels(vision, {image.data(), 8, 4, 24}, rows.data());
  std::vector<float> positions(16 * 3);
  for (size_t i = 0; i < positions.size(); ++i) positions[i] = static_cast<float>(i);
  std::vector<double> taps(14);
  WritePositions(vision, positions.data(), {2, 4}, {taps.data(), taps.size()}, rows.data());
  // Patches of a square follow each other, row by row.
  const uint32_t order[8][2] = {{0, 0}, {0, 1}, {1, 0}, {1, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}};
  for (uint32_t p = 0; p < 8; ++p) {
    for (uint32_t c = 0; c < 3; ++c) {
      for (uint32_t i = 0; i < 4; ++i) {
        const uint32_t y = order[p][0] * 2 + i / 2, x = order[p][1] * 2 + i % 2;
        const double value = image[(y * 8 + x) * 3 + c] / 255.0;
        const double expected = (value - 0.1 * c) / (0.5 + 0.1 * c);
        EXPECT_NEAR(expected, static_cast<double>(rows[p * stride + c * 4 + i]), 1e-5);
      }
    }
    // Two rows of positions for each of the grid: their mean, weighted by distance.
    const double row = 4.0 * (order[p][0] * 2 + 0.5) + order[p][1];
    for (uint32_t c = 0; c < 3; ++c) {
      const double found = static_cast<double>(rows[p * stride + 12 + c]);
      // The outer row of an antialiased filter leans inwards.
      EXPECT_NEAR(row * 3 + c, found, 12.0 * 0.3) << p;
    }
  }
}

}  // namespace
}  // namespace arn
