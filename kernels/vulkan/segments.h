// Attention of few rows over many tokens: the tokens that a row sees are shared out in segments,
// each to a workgroup of its own, whose results a second dispatch merges (shaders/attention.comp).
#pragma once

#include <cstdint>

#include "kernels/backend.h"
#include "kernels/program.h"

namespace arn::vulkan {

// Positions of a segment; segments begin at its multiples.
inline constexpr uint32_t kAttentionSegment = 256;
// Invocations of a workgroup.
inline constexpr uint32_t kAttentionWidth = 64;

// How the rows of a kAttention step are shared out.
struct Segments {
  uint32_t positions = 0;  // of a segment; 0: the dispatch is none of attention
  uint32_t most = 1;       // that a row sees
  uint32_t max_rows = 0;   // of runs that are shared out: there is room for no more
  uint32_t window = 0, chunk = 0;
  bool sees_source = false;

  bool may_share() const { return most > 1 && max_rows != 0; }
};

// Invocations that share a key, and channels of four that each has (N_PARTS and PER_LANE).
struct AttentionLanes {
  uint32_t n_parts = 0, per_lane = 0;
};
AttentionLanes LanesOf(const AttentionKind& kind);

// A step that sees its own rows alone (kSelfAttention) is not shared out.
Segments SegmentsOf(const Program& program, const Step& step, uint32_t positions);
// Bytes of what is kept of them between the two dispatches.
uint64_t PartialBytes(const Program& program, const Step& step, uint32_t positions);

// Segments of the row that sees the most of them; 1: runs of n_rows are not shared out. sequences:
// the rows of one run, or of several that follow each other.
uint32_t CountSegments(const Segments& segments, Span<const SequenceRows> sequences,
                       uint32_t n_rows);

}  // namespace arn::vulkan
