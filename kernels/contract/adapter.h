// Adapters. Low-rank ones (LoRA: Hu et al., 2021, arXiv:2106.09685) are changes of matrices that
// are added to their products as these are computed; control vectors (Zou et al., 2023,
// arXiv:2310.01405) are added to the residual stream. Plain data; the runtime reads it from a
// bundle.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/contract/step.h"
#include "platform/base/dtype.h"
#include "platform/base/span.h"

namespace arn {

// False in libraries without ARENITE_ADAPTERS: sessions take none.
#ifdef ARENITE_NO_ADAPTERS
inline constexpr bool kHasAdapters = false;
#else
inline constexpr bool kHasAdapters = true;
#endif
inline constexpr char kNoAdapters[] = "this library is built without adapters (ARENITE_ADAPTERS)";

// A low-rank matrix is stored in panels of this many outputs, padded with zeros, the same on every
// CPU. Of floats: [outputs / 16][inputs][16]. Of int8: [outputs / 16][inputs / 8][2][16][4], behind
// the scales and sums below. Of int4 likewise, but [outputs / 16][inputs / 8][16][4]: the low four
// bits are those of the first four inputs, the high ones those of the others. Scales and sums of
// int4 count each integer 16 times: kernels multiply by a byte whose low four bits are zeros.
inline constexpr uint32_t kLowRankColumns = 16;
// int8 and int4: inputs are padded to a multiple of this.
inline constexpr uint32_t kLowRankInputs = 8;
// int8 and int4: B multiplies A x as integers, of so many ranks with a scale of their own.
inline constexpr uint32_t kRankChunk = 128;

constexpr uint64_t LowRankPanels(uint32_t outputs) {
  return (uint64_t{outputs} + kLowRankColumns - 1) / kLowRankColumns;
}
// True if A and B are integers with scales.
constexpr bool IsIntegerLowRank(DType dtype) {
  return dtype == DType::kInt8 || dtype == DType::kInt4;
}
// Return the bytes of a panel, of what is before the panels, and of a whole matrix.
// REQUIRES: dtype is kInt8, kInt4, kF16 or kF32; no overflow, as with outputs and inputs below
// 2^24.
constexpr uint64_t LowRankPanelBytes(DType dtype, uint32_t inputs) {
  if (!IsIntegerLowRank(dtype))
    return uint64_t{kLowRankColumns} * inputs * (dtype == DType::kF16 ? 2 : 4);
  const uint64_t padded = (uint64_t{inputs} + kLowRankInputs - 1) / kLowRankInputs * kLowRankInputs;
  return padded * kLowRankColumns / (dtype == DType::kInt4 ? 2 : 1);
}
// A: f32 scales of its outputs, then the int32 sums of their integers.
constexpr uint64_t LowRankAHeadBytes(DType dtype, uint32_t outputs) {
  return IsIntegerLowRank(dtype) ? 2 * sizeof(float) * kLowRankColumns * LowRankPanels(outputs) : 0;
}
// B: f32 scales of its panels, padded to whole slices of 64 bytes.
constexpr uint64_t LowRankBHeadBytes(DType dtype, uint32_t outputs) {
  return IsIntegerLowRank(dtype) ? (LowRankPanels(outputs) + 15) / 16 * 16 * sizeof(float) : 0;
}
constexpr uint64_t LowRankABytes(DType dtype, uint32_t outputs, uint32_t inputs) {
  return LowRankAHeadBytes(dtype, outputs) +
         LowRankPanels(outputs) * LowRankPanelBytes(dtype, inputs);
}
constexpr uint64_t LowRankBBytes(DType dtype, uint32_t outputs, uint32_t inputs) {
  return LowRankBHeadBytes(dtype, outputs) +
         LowRankPanels(outputs) * LowRankPanelBytes(dtype, inputs);
}

// Rows [first_row, first_row + n_rows) of the changed matrix: B times elements [first_rank,
// first_rank + rank) of A x.
struct LowRankBlock {
  uint32_t first_row = 0, n_rows = 0;
  uint32_t first_rank = 0, rank = 0;
  const std::byte* b = nullptr;  // n_rows outputs, rank inputs
};

// The change of one matrix. A has the rows of all of its blocks.
struct LowRank {
  DType dtype = DType::kF16;  // of A and B: kF16, kF32, or, of integer matrices, kInt8 or kInt4
  uint32_t rank = 0;          // outputs of A
  uint32_t cols = 0;          // inputs of A: columns of the matrix
  const std::byte* a = nullptr;
  Span<const LowRankBlock> blocks;
  uint64_t bytes = 0;  // of A and all B
};

struct Adapter {
  uint64_t hash = 0;  // identifies it in saved states
  Span<const LowRank> changes;
  Span<const uint32_t> change_of;  // [weights of the program]: index into `changes` plus 1; 0: none
  uint32_t max_rank = 0;           // the largest LowRank::rank
  // [layers], or empty: control vectors, as wide as the residual stream, which are added to it at
  // the end of a layer; null: none.
  Span<const float* const> directions;

  // Returns the change of a matrix; null: none.
  const LowRank* Of(WeightId id) const {
    return change_of[id] == 0 ? nullptr : &changes[change_of[id] - 1];
  }
  const float* DirectionOf(uint32_t layer) const {
    return layer < directions.size() ? directions[layer] : nullptr;
  }
};

// An adapter that a sequence uses: its changes times `scale`. Several add up.
struct ActiveAdapter {
  const Adapter* adapter = nullptr;
  float scale = 1.0f;
};
inline bool operator==(const ActiveAdapter& a, const ActiveAdapter& b) {
  return a.adapter == b.adapter && a.scale == b.scale;
}
inline bool SameAdapters(Span<const ActiveAdapter> a, Span<const ActiveAdapter> b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!(a[i] == b[i])) return false;
  }
  return true;
}

}  // namespace arn
