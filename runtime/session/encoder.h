// Encoder: runs the encoder of a sequence (cross-attention input).
#pragma once

#include <cstdint>

#include "platform/base/span.h"
#include "platform/base/status.h"
#include "runtime/session/core.h"
#include "runtime/session/executor.h"
#include "runtime/session/recompute.h"
#include "runtime/session/runner.h"
#include "runtime/session/sequences.h"

namespace arn {

class Encoder {
 public:
  // All arguments must outlive the part.
  Encoder(SessionCore* core, Executor* executor, Sequences* sequences, Recompute* recompute,
          Runner* runner)
      : core_(*core),
        executor_(*executor),
        sequences_(*sequences),
        recompute_(*recompute),
        runner_(*runner) {}

  // Each empties the selected sequence and gives it new encoder output. kUnsupported if the model
  // takes no input of this kind.
  Status EncodeIds(Span<const int32_t> ids);
  // features: f32 [n_frames, width].
  Status EncodeFeatures(Span<const float> features, uint32_t n_frames, uint32_t width);

 private:
  Status Encode(Span<const int32_t> ids, Span<const float> features, uint32_t rows);
  KvCache& cache() { return sequences_.cache(); }
  LogitsState& logits() { return sequences_.logits(); }

  SessionCore& core_;
  Executor& executor_;
  Sequences& sequences_;
  Recompute& recompute_;
  Runner& runner_;
};

}  // namespace arn
