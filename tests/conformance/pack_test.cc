// Compares the packers with XNNPACK's byte for byte, and the unpackers with the source matrix.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "kernels/contract/code_type.h"
#include "platform/base/arith.h"
#include "program_builder.h"
#include "xnn_pack.h"

namespace arn::conformance {
namespace {

struct Shape {
  uint32_t rows, cols;
};
constexpr Shape kShapes[] = {{1, 1},   {1, 32},    {7, 33},   {8, 64},     {16, 172},
                             {17, 31}, {33, 96},   {40, 172}, {1021, 172}, {172, 461},
                             {64, 8},  {129, 257}, {3, 2091}};

std::vector<WeightLayout> LayoutsOf(DType dtype) {
  std::vector<WeightLayout> layouts;
  if (!kHasLowBits && FindCodeType(dtype) != nullptr) return layouts;
  if (dtype <= DType::kInt4) layouts.push_back({});
  for (const PackTarget& target : PackTargets()) {
    const WeightLayout layout = TargetLayout(target, dtype);
    if (layout.order == WeightOrder::kRows) continue;
    if (std::count(layouts.begin(), layouts.end(), layout) == 0) layouts.push_back(layout);
  }
  auto panels = [&](uint8_t nr, uint8_t kr, uint8_t sr, uint8_t planes) {
    layouts.push_back({WeightOrder::kPanels, nr, kr, sr, planes});
  };
  if (dtype == DType::kF32) {  // first-generation Zen, exynos, SSE
    panels(16, 1, 4, 0), panels(8, 1, 4, 0), panels(4, 2, 1, 0);
  } else if (dtype == DType::kInt8) {  // SSE, AMX, scalar
    panels(4, 8, 1, 0), panels(64, 4, 1, 0), panels(4, 1, 1, 0), panels(4, 2, 4, 0);
  } else if (dtype == DType::kInt4) {
    panels(4, 8, 1, 1), panels(4, 1, 1, 2);
  }
  return layouts;
}

std::string Name(DType dtype, const WeightLayout& l, Shape shape) {
  return std::string(DTypeName(dtype)) + " order " + std::to_string(static_cast<int>(l.order)) +
         " nr " + std::to_string(l.nr) + " kr " + std::to_string(l.kr) + " sr " +
         std::to_string(l.sr) + " rows " + std::to_string(shape.rows) + " cols " +
         std::to_string(shape.cols);
}

constexpr DType kAllTypes[] = {
    DType::kF32,      DType::kF16,     DType::kBf16,        DType::kInt8,    DType::kInt4,
    DType::kTernary,  DType::kInt2,    DType::kTernaryRows, DType::kInt3,    DType::kInt4K,
    DType::kInt4K128, DType::kInt4K32, DType::kInt6K,       DType::kInt6K32, DType::kInt8K,
    DType::kFp4,      DType::kIq4K,    DType::kIq4,         DType::kInt8K256};

TEST(PackTest, Panels_EveryLayout_SameBytesAsXnnpack) {
  std::mt19937 rng(1);
  for (DType dtype : {DType::kF32, DType::kInt8, DType::kInt4}) {
    for (const WeightLayout& layout : LayoutsOf(dtype)) {
      if (layout.order != WeightOrder::kPanels) continue;
      for (Shape shape : kShapes) {
        SCOPED_TRACE(Name(dtype, layout, shape));
        const Matrix m = RandomMatrix(dtype, shape.rows, shape.cols, true, &rng);
        uint64_t bytes = 0;
        ASSERT_TRUE(PackedBytes(dtype, layout, shape.rows, shape.cols, &bytes));
        AlignedBytes ours(bytes);
        PackRows(m.View(), layout, ours.data());
        const std::vector<uint8_t> theirs = XnnPack(m, layout);
        ASSERT_EQ(bytes, theirs.size());
        EXPECT_EQ(std::memcmp(ours.data(), theirs.data(), bytes), 0);
      }
    }
  }
}

TEST(PackTest, Panels_LargestSumsOfRows_SameBytesAsXnnpack) {
  for (const int8_t level : {int8_t{127}, int8_t{-127}}) {
    for (const WeightLayout& layout : LayoutsOf(DType::kInt8)) {
      if (layout.order != WeightOrder::kPanels) continue;
      std::mt19937 rng(1);
      Matrix m = RandomMatrix(DType::kInt8, 2, 4101, true, &rng);
      std::fill(m.values.begin(), m.values.end(), static_cast<uint8_t>(level));
      uint64_t bytes = 0;
      ASSERT_TRUE(PackedBytes(DType::kInt8, layout, m.rows, m.cols, &bytes));
      AlignedBytes ours(bytes);
      PackRows(m.View(), layout, ours.data());
      const std::vector<uint8_t> theirs = XnnPack(m, layout);
      ASSERT_EQ(bytes, theirs.size());
      EXPECT_EQ(std::memcmp(ours.data(), theirs.data(), bytes), 0);
    }
  }
}

TEST(PackTest, Unpack_EveryLayout_GivesTheSource) {
  std::mt19937 rng(2);
  for (DType dtype : kAllTypes) {
    for (const WeightLayout& layout : LayoutsOf(dtype)) {
      for (Shape shape : kShapes) {
        SCOPED_TRACE(Name(dtype, layout, shape));
        const Matrix m = RandomMatrix(dtype, shape.rows, shape.cols, true, &rng);
        Weight w;
        w.dtype = dtype;
        w.layout = layout;
        w.rows = shape.rows;
        w.cols = shape.cols;
        ASSERT_TRUE(PackedBytes(dtype, layout, shape.rows, shape.cols, &w.bytes));
        AlignedBytes bytes(w.bytes);
        PackRows(m.View(), layout, bytes.data());
        w.data = bytes.data();
        std::vector<float> row(shape.cols);
        for (uint32_t r = 0; r < shape.rows; ++r) {
          UnpackRowF32(w, r, row.data());
          for (uint32_t c = 0; c < shape.cols; ++c) {
            ASSERT_EQ(row[c], static_cast<float>(m.exact[size_t{r} * shape.cols + c])) << r << c;
          }
          ASSERT_EQ(UnpackBias(w, r), m.bias[r]);
        }
      }
    }
  }
}

TEST(PackTest, Panels_PackedInSlabs_SameBytesAsAtOnce) {
  std::mt19937 rng(3);
  for (DType dtype : kAllTypes) {
    for (const WeightLayout& layout : LayoutsOf(dtype)) {
      if (layout.order != WeightOrder::kPanels) continue;
      const Matrix m = RandomMatrix(dtype, 141, 75, true, &rng);
      uint64_t bytes = 0;
      ASSERT_TRUE(PackedBytes(dtype, layout, m.rows, m.cols, &bytes));
      AlignedBytes whole(bytes), slabs(bytes);
      PackRows(m.View(), layout, whole.data());
      uint64_t at = 0;
      for (uint32_t first = 0; first < m.rows; first += layout.nr) {
        RowMatrix slab = m.View();
        slab.rows = Min<uint32_t>(layout.nr, m.rows - first);
        slab.values = m.values.data() + m.values.size() / m.rows * first;
        if (!m.scales.empty()) slab.scales = m.scales.data() + m.scales.size() / m.rows * first;
        if (!m.row_scales.empty()) slab.row_scales = m.row_scales.data() + first;
        slab.bias = m.bias.data() + first;
        PackRows(slab, layout, slabs.data() + at);
        uint64_t slab_bytes = 0;
        ASSERT_TRUE(PackedBytes(dtype, layout, slab.rows, m.cols, &slab_bytes));
        at += slab_bytes;
      }
      EXPECT_EQ(at, bytes);
      EXPECT_EQ(std::memcmp(whole.data(), slabs.data(), bytes), 0);
    }
  }
}

TEST(PackTest, Panels_Of16Bits_LieAsTheFormatSays) {
  constexpr uint32_t kRows = 5, kCols = 3;
  Matrix m;
  m.rows = kRows;
  m.cols = kCols;
  m.bias = {1, 2, 3, 4, 5};
  for (uint16_t i = 0; i < kRows * kCols; ++i) {  // element (r, c) has the bits 100 + 3 r + c
    m.values.push_back(static_cast<uint8_t>(100 + i));
    m.values.push_back(0);
  }
  for (const uint8_t kr : {uint8_t{1}, uint8_t{2}}) {
    m.dtype = kr == 1 ? DType::kF16 : DType::kBf16;
    const WeightLayout layout = {WeightOrder::kPanels, 4, kr, 1, 0};
    const uint32_t k = kr == 1 ? 3 : 4;
    uint64_t bytes = 0;
    ASSERT_TRUE(PackedBytes(m.dtype, layout, kRows, kCols, &bytes));
    ASSERT_EQ(bytes, 2 * (4 * sizeof(float) + 4 * k * sizeof(uint16_t)));
    AlignedBytes packed(bytes);
    PackRows(m.View(), layout, packed.data());
    for (uint32_t row = 0; row < 8; ++row) {
      const std::byte* panel = packed.data() + row / 4 * (bytes / 2);
      float bias;
      std::memcpy(&bias, panel + row % 4 * sizeof(float), sizeof bias);
      EXPECT_EQ(bias, row < kRows ? m.bias[row] : 0.0f);
      for (uint32_t c = 0; c < k; ++c) {
        uint16_t bits;
        const uint32_t at = c / kr * 4 * kr + row % 4 * kr + c % kr;
        std::memcpy(&bits, panel + 4 * sizeof(float) + at * sizeof bits, sizeof bits);
        EXPECT_EQ(bits, row < kRows && c < kCols ? 100 + 3 * row + c : 0) << row << " " << c;
      }
    }
  }
}

// A weight of 1 bit set at a known place of every vector, as code_panel.h says.
TEST(PackTest, Panels_OfCodes_LieAsTheFormatSays) {
  if (!kHasLowBits) GTEST_SKIP() << "built without ARENITE_LOW_BITS";
  for (const DType dtype :
       {DType::kInt2, DType::kInt3, DType::kTernary, DType::kTernaryRows, DType::kInt4K,
        DType::kInt4K32, DType::kInt6K, DType::kInt6K32, DType::kInt8K, DType::kFp4, DType::kIq4K,
        DType::kIq4, DType::kInt8K256}) {
    const CodeType& type = *FindCodeType(dtype);
    const uint32_t n_codes = type.n_levels();
    constexpr uint32_t kRows = 17, kCols = 40;
    Matrix m;
    m.dtype = dtype;
    m.rows = kRows;
    m.cols = kCols;
    const auto code_of = [&](uint32_t r, uint32_t c) { return (3 * r + c + c / 7) % n_codes; };
    for (uint32_t r = 0; r < kRows; ++r) {
      for (uint32_t c = 0; c < 64; ++c) {
        m.values.push_back(static_cast<uint8_t>(c < kCols ? code_of(r, c) : 0));
      }
      for (uint32_t b = 0; b < type.Entries(kCols); ++b) {
        m.scales.push_back(static_cast<uint8_t>(1 + r + b));
        m.scales.push_back(0);
      }
      m.row_scales.push_back(static_cast<float>(r) + 0.5f);
      m.bias.push_back(-static_cast<float>(r));
    }
    const WeightLayout layout = {WeightOrder::kPanels, 16, 4, 1, 0};
    uint64_t bytes = 0;
    ASSERT_TRUE(PackedBytes(dtype, layout, kRows, kCols, &bytes));
    const bool has_scales = type.scale != BlockScale::kNone;
    const auto n_entries = static_cast<uint32_t>(type.Entries(kCols));
    const uint32_t codes_at = 3 * 64 + (n_entries * 16 * type.scale_bytes() + 63) / 64 * 64;
    const uint32_t panel_bytes = codes_at + 2 * type.bits * 64;
    ASSERT_EQ(bytes, 2 * panel_bytes);
    AlignedBytes packed(bytes);
    PackRows(m.View(), layout, packed.data());
    for (uint32_t r = 0; r < kRows; ++r) {
      const std::byte* panel = packed.data() + r / 16 * panel_bytes;
      const auto at = [&](uint32_t offset) {
        float value;
        std::memcpy(&value, panel + offset + r % 16 * sizeof value, sizeof value);
        return value;
      };
      EXPECT_EQ(at(64), static_cast<float>(r) + 0.5f);
      EXPECT_EQ(at(128), -static_cast<float>(r));
      for (uint32_t b = 0; has_scales && b < n_entries; ++b) {
        const uint32_t width = type.scale_bytes();
        const uint32_t place = type.is_nested() ? b / 2 * 32 + r % 16 * 2 + b % 2 : b * 16 + r % 16;
        EXPECT_EQ(static_cast<uint32_t>(panel[192 + place * width]), 1 + r + b);
      }
      for (uint32_t c = 0; c < kCols; ++c) {
        const std::byte* unit = panel + codes_at + c / 32 * type.bits * 64;
        const uint32_t quad = c % 32 / 4, byte = r % 16 * 4 + c % 4;
        const auto bit = [&](uint32_t vector, uint32_t shift) {
          return static_cast<uint32_t>(unit[vector * 64 + byte]) >> shift & 1;
        };
        uint32_t code = 0;
        for (uint32_t i = 0; i < type.bits; ++i) {
          code |= (type.bits == 2               ? bit(quad / 4, 2 * (quad % 4) + i)
                   : type.bits == 8             ? bit(quad, i)
                   : i >= 4                     ? bit(4 + quad / 4, 2 * (quad % 4) + i - 4)
                   : quad < 6 || type.bits != 3 ? bit(quad / 2, 4 * (quad % 2) + i)
                                                : bit(i, quad == 6 ? 3 : 7))
                  << i;
        }
        ASSERT_EQ(code, code_of(r, c)) << DTypeName(dtype) << " " << r << " " << c;
      }
    }
  }
}

// Element by element, as kernels/pack/device_rows.h says.
TEST(PackTest, DeviceRows_LieAsTheFormatSays) {
  constexpr WeightLayout kLayout = {WeightOrder::kDeviceRows};
  std::mt19937 rng(5);
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBf16, DType::kInt8, DType::kInt4}) {
    for (const Shape shape : kShapes) {
      SCOPED_TRACE(Name(dtype, kLayout, shape));
      const Matrix m = RandomMatrix(dtype, shape.rows, shape.cols, true, &rng);
      const bool is_int4 = dtype == DType::kInt4;
      const uint32_t padded = is_int4 ? (shape.cols + 31) / 32 * 32 : shape.cols;
      const uint32_t n_blocks = is_int4 ? padded / 32 : 0;
      const uint32_t elements = is_int4 ? padded / 2 : shape.cols * ElementBytes(dtype);
      const uint32_t row_bytes = (elements + 15) / 16 * 16;
      const uint32_t heads = (shape.rows * row_bytes + 255) / 256 * 256;
      const uint32_t blocks = heads + shape.rows * 16, block_row = (n_blocks + 1) / 2 * 4;
      uint64_t bytes = 0;
      ASSERT_TRUE(PackedBytes(dtype, kLayout, shape.rows, shape.cols, &bytes));
      ASSERT_EQ(bytes, blocks + shape.rows * block_row);
      AlignedBytes packed(bytes);
      PackRows(m.View(), kLayout, packed.data());
      const auto byte_at = [&](uint64_t at) { return static_cast<uint8_t>(packed.data()[at]); };
      const auto word_at = [&](uint64_t at) {
        uint32_t word;
        std::memcpy(&word, packed.data() + at, sizeof word);
        return word;
      };
      for (uint32_t r = 0; r < shape.rows; ++r) {
        int32_t whole = 0;
        double scaled = 0;
        for (uint32_t c = 0; is_int4 && c < padded; ++c) {
          const uint8_t byte = byte_at(r * row_bytes + c / 8 * 4 + c % 4);
          const uint32_t value = c % 8 < 4 ? byte & 15u : byte >> 4u;
          ASSERT_EQ(value, m.values[r * padded + c]) << r << " " << c;
          uint16_t scale;
          std::memcpy(&scale, m.scales.data() + 2 * (r * n_blocks + c / 32), sizeof scale);
          scaled += (static_cast<double>(value) - 8) * static_cast<double>(F32FromBf16(scale));
        }
        for (uint32_t i = 0; !is_int4 && i < elements; ++i) {
          ASSERT_EQ(byte_at(r * row_bytes + i), m.values[r * elements + i]) << r << " " << i;
          whole += static_cast<int8_t>(m.values[r * elements + i]);
        }
        for (uint32_t i = elements; i < row_bytes; ++i) ASSERT_EQ(byte_at(r * row_bytes + i), 0);
        float scale = 0;
        if (dtype == DType::kInt8) std::memcpy(&scale, m.scales.data() + 4 * r, sizeof scale);
        const uint64_t head = heads + r * 16;
        EXPECT_EQ(word_at(head), BitsFromF32(scale));
        EXPECT_EQ(word_at(head + 4), BitsFromF32(m.bias[r]));
        if (dtype == DType::kInt8) {
          EXPECT_EQ(static_cast<int32_t>(word_at(head + 8)), whole);
        } else {
          EXPECT_NEAR(F32FromBits(word_at(head + 8)), scaled, 1e-6 * (1 + std::fabs(scaled)));
        }
        EXPECT_EQ(word_at(head + 12), 0u);
        const uint64_t of_row = blocks + uint64_t{r} * block_row;
        for (uint32_t i = 0; i < 2 * n_blocks; ++i) {
          EXPECT_EQ(byte_at(of_row + i), m.scales[2 * r * n_blocks + i]);
        }
        if (n_blocks % 2 != 0) {
          EXPECT_EQ(word_at(of_row + block_row - 4) >> 16, 0u);
        }
      }
    }
  }
}

TEST(PackTest, PackedBytes_BadCombination_IsRefused) {
  uint64_t bytes = 0;
  constexpr WeightLayout kDevice = {WeightOrder::kDeviceRows};
  EXPECT_TRUE(PackedBytes(DType::kInt8, kDevice, 5, 5, &bytes));
  EXPECT_FALSE(PackedBytes(DType::kInt8, {WeightOrder::kDeviceRows, 1}, 5, 5, &bytes));
  EXPECT_FALSE(PackedBytes(DType::kInt8, {WeightOrder::kDeviceRows, 0, 0, 1}, 5, 5, &bytes));
  EXPECT_FALSE(PackedBytes(DType::kInt3, kDevice, 5, 5, &bytes));
  EXPECT_FALSE(PackedBytes(DType::kF32, kDevice, (1u << 31) - 1, (1u << 31) - 1, &bytes));
  const WeightLayout good = {WeightOrder::kPanels, 16, 8, 1, 0};
  EXPECT_TRUE(PackedBytes(DType::kInt8, good, 5, 5, &bytes));
  EXPECT_FALSE(PackedBytes(DType::kInt8, good, 0, 5, &bytes));
  EXPECT_FALSE(PackedBytes(DType::kInt8, good, 5, 0, &bytes));
  EXPECT_FALSE(PackedBytes(DType::kF16, good, 5, 5, &bytes));  // kr must be 1
  EXPECT_TRUE(PackedBytes(DType::kF16, {WeightOrder::kPanels, 32, 1, 1, 0}, 5, 5, &bytes));
  EXPECT_FALSE(PackedBytes(DType::kF16, {WeightOrder::kPanels, 32, 1, 2, 0}, 5, 5, &bytes));
  EXPECT_FALSE(PackedBytes(DType::kBf16, {WeightOrder::kPanels, 32, 2, 1, 2}, 5, 5, &bytes));
  EXPECT_FALSE(PackedBytes(DType::kInt4, good, 5, 5, &bytes));  // planes must be 2
  EXPECT_FALSE(PackedBytes(static_cast<DType>(kDTypeCount), {}, 5, 5, &bytes));
  EXPECT_FALSE(PackedBytes(DType::kInt3, {}, 5, 5, &bytes));
  EXPECT_FALSE(PackedBytes(DType::kInt3, good, 5, 5, &bytes));
  for (uint8_t bad : {0, 3, 255}) {
    EXPECT_FALSE(PackedBytes(DType::kInt8, {WeightOrder::kPanels, bad, 8, 1, 0}, 5, 5, &bytes));
    EXPECT_FALSE(PackedBytes(DType::kInt8, {WeightOrder::kPanels, 16, bad, 1, 0}, 5, 5, &bytes));
    EXPECT_FALSE(PackedBytes(DType::kInt8, {WeightOrder::kPanels, 16, 8, bad, 0}, 5, 5, &bytes));
    EXPECT_FALSE(PackedBytes(DType::kInt4, {WeightOrder::kPanels, 16, 8, 1, bad}, 5, 5, &bytes));
  }
  EXPECT_FALSE(PackedBytes(DType::kF32, {WeightOrder::kRows, 16, 0, 0, 0}, 5, 5, &bytes));
  EXPECT_FALSE(PackedBytes(DType::kF32, {static_cast<WeightOrder>(3), 8, 1, 1, 0}, 5, 5, &bytes));
  EXPECT_FALSE(PackedBytes(DType::kF32, {}, UINT32_MAX, UINT32_MAX, &bytes));
  EXPECT_FALSE(PackedBytes(DType::kF32, good, (1u << 31) - 1, (1u << 31) - 1, &bytes));
}

TEST(PackTest, Targets_Names_AreFound) {
  for (const PackTarget& target : PackTargets()) EXPECT_EQ(FindPackTarget(target.name), &target);
  EXPECT_EQ(FindPackTarget("x86"), nullptr);
  EXPECT_EQ(FindPackTarget(""), nullptr);
}

}  // namespace
}  // namespace arn::conformance
