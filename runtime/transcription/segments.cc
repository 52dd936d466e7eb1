#include "runtime/transcription/segments.h"

namespace arn {
namespace {

constexpr uint32_t kFramesPerTime = 2;  // between two times

uint32_t FrameOf(const TokenRules& rules, int32_t id) {
  return kFramesPerTime * static_cast<uint32_t>(id - rules.no_timestamps_id - 1);
}

// Returns the index of the last time that follows a time; 0: none.
size_t LastOfPair(const TokenRules& rules, Span<const int32_t> ids) {
  for (size_t i = ids.size(); i > 1; --i) {
    if (rules.IsTime(ids[i - 1]) && rules.IsTime(ids[i - 2])) return i - 1;
  }
  return 0;
}

// One segment, up to its last time if it has one that is not 0.
SegmentPart Whole(const TokenRules& rules, Span<const int32_t> ids, uint32_t n_frames) {
  SegmentPart whole = {0, ids.size(), 0, n_frames / kFramesPerTime * kFramesPerTime};
  for (size_t i = ids.size(); i > 0; --i) {
    if (!rules.IsTime(ids[i - 1])) continue;
    const uint32_t frame = FrameOf(rules, ids[i - 1]);
    if (frame != 0) whole.end_frame = frame;
    break;
  }
  return whole;
}

}  // namespace

Status CutSegments(const TokenRules& rules, Span<const int32_t> ids, uint32_t n_frames,
                   const SegmentSink& sink, uint32_t* out_frames) {
  *out_frames = n_frames;
  const size_t n = ids.size();
  const size_t last = rules.has_timestamps ? LastOfPair(rules, ids) : 0;
  if (last == 0) return n == 0 ? Status::kOk : sink.add(sink.user, Whole(rules, ids, n_frames));
  // A lone time at the end: nothing is said after it.
  const bool ends_alone = rules.IsTime(ids[n - 1]) && !rules.IsTime(ids[n - 2]);
  size_t first = 0;
  for (size_t i = 1; i <= last; ++i) {
    if (!rules.IsTime(ids[i]) || !rules.IsTime(ids[i - 1])) continue;
    const size_t end = i == last && !ends_alone ? i + 1 : i;
    ARN_TRY(sink.add(sink.user,
                     {first, end - first, FrameOf(rules, ids[first]), FrameOf(rules, ids[i - 1])}));
    first = end;
  }
  if (ends_alone) {
    return sink.add(sink.user,
                    {first, n - first, FrameOf(rules, ids[first]), FrameOf(rules, ids[n - 1])});
  }
  *out_frames = FrameOf(rules, ids[last - 1]);
  // Skips the whole window: without progress the next one would be the same again.
  if (*out_frames == 0) *out_frames = n_frames;
  return Status::kOk;
}

}  // namespace arn
