#include "kernels/vulkan/lower/segments.h"

#include <bit>

#include "kernels/contract/check.h"
#include "kernels/vulkan/lower/dispatch.h"
#include "platform/base/arith.h"

namespace arn::vulkan {
namespace {

// Maximum size of partial results. If it is not enough, only runs of fewer rows are split.
constexpr uint64_t kMaxBytes = uint64_t{64} << 20;

// Bytes per row.
uint64_t RowBytes(const AttentionKind& kind, uint32_t n_segments) {
  const uint64_t record = uint64_t{LanesOf(kind.head_dim).per_lane} * kAttentionWidth + 1;
  return kind.n_heads * n_segments * record * 4 * sizeof(float);
}

uint32_t MostSegments(const Program& program, const AttentionKind& kind, uint32_t positions) {
  if (kind.is_cross_attention) {
    const uint32_t rows = program.kv_groups[kind.group].page_tokens;
    return static_cast<uint32_t>(CeilDiv(rows, positions));
  }
  auto most = static_cast<uint32_t>(CeilDiv(program.max_context, positions));
  for (const uint32_t seen : {kind.window, kind.chunk}) {
    // The window may start anywhere in a segment.
    if (seen != 0) most = Min(most, static_cast<uint32_t>(CeilDiv(seen - 1, positions)) + 1);
  }
  return most;
}

}  // namespace

AttentionLanes LanesOf(uint32_t head_dim, uint32_t width) {
  const auto quads = static_cast<uint32_t>(CeilDiv(head_dim, 4));
  AttentionLanes lanes;
  lanes.n_parts = Min(width, std::bit_ceil(quads));
  lanes.per_lane = static_cast<uint32_t>(CeilDiv(quads, lanes.n_parts));
  return lanes;
}

Segments SegmentsOf(const Program& program, const Step& step, uint32_t positions) {
  Segments s;
  s.positions = positions;
  const auto* params = step.If<AttentionParams>();
  if (params == nullptr) return s;
  const AttentionKind& kind = program.kinds[params->kind];
  s.most = MostSegments(program, kind, positions);
  s.max_rows = static_cast<uint32_t>(
      Min<uint64_t>(kMaxBytes / RowBytes(kind, s.most), Min(kFewRows, program.max_rows)));
  s.window = kind.window;
  s.chunk = kind.chunk;
  s.is_cross_attention = kind.is_cross_attention;
  return s;
}

uint64_t PartialBytes(const Program& program, const Step& step, uint32_t positions) {
  const Segments s = SegmentsOf(program, step, positions);
  if (!s.may_share()) return 0;
  const AttentionKind& kind = program.kinds[step.Get<AttentionParams>().kind];
  return s.max_rows * RowBytes(kind, s.most);
}

uint32_t CountSegments(const Segments& segments, Span<const SequenceRows> sequences,
                       uint32_t n_rows, bool sees_ahead) {
  const Segments& s = segments;
  uint32_t most = 1;
  if (!s.may_share() || n_rows > s.max_rows) return most;
  const auto count = [&](const SequenceRows& sequence, uint32_t position) {
    uint32_t first = 0, end = position + 1;
    if (s.is_cross_attention) {
      end = sequence.encoder_rows;
    } else {
      if (s.window != 0 && position >= s.window) first = position - s.window + 1;
      if (s.chunk != 0) first = Max(first, position - position % s.chunk);
      if (sees_ahead) end = sequence.first_position + sequence.n_rows;
    }
    const auto past = static_cast<uint32_t>(CeilDiv(end, s.positions));
    most = Max(most, past - first / s.positions);
  };
  for (const SequenceRows& sequence : sequences) {
    for (uint32_t i = 0; i < sequence.n_rows; ++i) count(sequence, sequence.first_position + i);
  }
  return most;
}

}  // namespace arn::vulkan
