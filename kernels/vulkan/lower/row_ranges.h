// Ranges of rows. A grid has at most 65,535 rows, and a binding 128 MiB of an activation. The
// towers of large images have more: each of their dispatches becomes one for each range of its
// rows, which binds that part of its values.
#pragma once

#include <cstdint>

#include "kernels/contract/program.h"

namespace arn::vulkan {

inline constexpr uint64_t kMaxGridRows = 65535;  // on every device
inline constexpr uint64_t kAllRows = UINT64_MAX;

// Returns the rows of a range: a multiple of all tiles of rows, and such that bindings of ranges
// begin at aligned offsets. kAllRows: the program needs none, or is not an encoder alone; 0: a few
// rows are more than binding_bytes.
uint64_t RangeRowsOf(const Program& program, uint64_t binding_bytes);

// True if the step computes each row alone, or is attention without pages.
bool HasRanges(const Program& program, const Step& step);

// Words of the zero points and scales of `rows` quantised rows, and of the values of one row.
uint32_t QuantizedHeadWords(uint64_t rows);
uint32_t QuantizedWords(uint32_t cols);
// Returns the bytes of `rows` quantised rows, and those from one range of rows to the next.
uint64_t QuantizedBytes(uint64_t rows, uint32_t cols);
uint64_t QuantizedRangeBytes(uint64_t rows, uint32_t cols);

// Keys and values of kSelfAttention whose rows are in ranges, copied because a row sees those of
// other ranges: [rows, heads * head_dim] each, of some heads at a time.
struct CopiedHeads {
  uint32_t heads = 0;      // that fit in a binding; 0: not even one
  uint64_t values_at = 0;  // bytes from the keys to the values
  uint64_t bytes() const { return 2 * values_at; }
};
CopiedHeads CopiedHeadsOf(const Program& program, const AttentionKind& kind,
                          uint64_t binding_bytes);

}  // namespace arn::vulkan
