// Cuts the tokens of a window into segments, by the times among them: transformers'
// WhisperGenerationMixin._retrieve_segment.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/base/result.h"
#include "platform/base/span.h"
#include "runtime/transcription/token_rules.h"

namespace arn {

// Tokens [first, first + n) of a window, the times around them included, and the frames of the
// window between which they were heard.
struct SegmentPart {
  size_t first = 0;
  size_t n = 0;
  uint32_t start_frame = 0;
  uint32_t end_frame = 0;
};
struct SegmentSink {
  Status (*add)(void* user, const SegmentPart& part);
  void* user;
};

// Passes the segments of `ids` (the tokens of a window of n_frames, without the end) to `sink` in
// order, and sets *out_frames to how far the next window begins behind this one: where the last
// segment ended that another followed, or at the end of this one. Without times there is one
// segment, the whole window. A failure of the sink ends it.
Status CutSegments(const TokenRules& rules, Span<const int32_t> ids, uint32_t n_frames,
                   const SegmentSink& sink, uint32_t* out_frames);

}  // namespace arn
