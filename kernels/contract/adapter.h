// Low-rank adapters (LoRA: Hu et al., 2021, arXiv:2106.09685): changes of matrices that are added
// to their products as these are computed. Plain data; the runtime reads it from a bundle.
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

// A low-rank matrix is stored in panels of this many outputs: [outputs / 16][inputs][16], padded
// with zeros. The same on every CPU.
inline constexpr uint32_t kLowRankColumns = 16;

// Returns the bytes of such a matrix. REQUIRES: dtype is kF16 or kF32; no overflow, as with outputs
// and inputs below 2^24.
constexpr uint64_t LowRankBytes(DType dtype, uint32_t outputs, uint32_t inputs) {
  const uint64_t panels = (uint64_t{outputs} + kLowRankColumns - 1) / kLowRankColumns;
  return panels * kLowRankColumns * inputs * (dtype == DType::kF16 ? 2 : 4);
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
  DType dtype = DType::kF16;  // of A and B: kF16 or kF32
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

  // Returns the change of a matrix; null: none.
  const LowRank* Of(WeightId id) const {
    return change_of[id] == 0 ? nullptr : &changes[change_of[id] - 1];
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
