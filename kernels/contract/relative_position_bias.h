// Relative position bias of attention scores, shared by the backends that run on the host.
#pragma once

#include <cstdint>

namespace arn {

// The bias of Raffel et al., "Exploring the Limits of Transfer Learning with a Unified Text-to-Text
// Transformer", 2020, section 2.1, with the buckets already expanded to one row per distance.
struct RelativePositionBias {
  const float* rows;              // [n_relative_positions, n_heads]
  uint32_t n_relative_positions;  // at least 1
  uint32_t n_heads;
  bool both_ways;  // bidirectional: distance 0 is the middle row; else the first

  float Of(uint32_t query, uint32_t key, uint32_t head) const {
    const int64_t origin = both_ways ? (n_relative_positions - 1) / 2 : 0;
    int64_t row = origin + int64_t{query} - int64_t{key};
    row = row < 0                                ? 0
          : row >= int64_t{n_relative_positions} ? int64_t{n_relative_positions} - 1
                                                 : row;
    return rows[static_cast<uint64_t>(row) * n_heads + head];
  }
};

}  // namespace arn
