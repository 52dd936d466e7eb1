// Splits attention of few rows over many tokens: each workgroup processes one segment of a row's
// tokens, and a second dispatch merges the results (shaders/attention.comp).
#pragma once

#include <cstdint>

#include "kernels/contract/backend.h"
#include "kernels/contract/program.h"

namespace arn::vulkan {

// Positions per segment; segments start at multiples of it.
inline constexpr uint32_t kAttentionSegment = 256;
// Invocations per workgroup.
inline constexpr uint32_t kAttentionWidth = 64;

// How the rows of a kAttention step are split.
struct Segments {
  uint32_t positions = 0;  // per segment; 0: not an attention dispatch
  uint32_t most = 1;       // maximum segments per row
  uint32_t max_rows = 0;   // maximum rows of runs that are split, limited by the memory for partial
                           // results
  uint32_t window = 0, chunk = 0;
  bool is_cross_attention = false;

  bool may_share() const { return most > 1 && max_rows != 0; }
};

// Invocations that share a key, and channel quads per invocation (N_PARTS and PER_LANE).
struct AttentionLanes {
  uint32_t n_parts = 0, per_lane = 0;
};
AttentionLanes LanesOf(uint32_t head_dim, uint32_t width = kAttentionWidth);

// kSelfAttention is never split.
Segments SegmentsOf(const Program& program, const Step& step, uint32_t positions);
// Bytes of the partial results between the two dispatches.
uint64_t PartialBytes(const Program& program, const Step& step, uint32_t positions);

// Returns the maximum number of segments of any row; 1: a run of n_rows is not split. sequences:
// the rows of one run, or of several consecutive runs. sees_ahead: rows may see all rows of their
// sequence in the run.
uint32_t CountSegments(const Segments& segments, Span<const SequenceRows> sequences,
                       uint32_t n_rows, bool sees_ahead = false);

}  // namespace arn::vulkan
