// Recompute: goes on with the fallback backend after the device has failed. No data on the device
// is trusted then: all sequences are recomputed from their token ids.
#pragma once

#include <cstdint>

#include "platform/base/status.h"
#include "runtime/session/core.h"
#include "runtime/session/executor.h"
#include "runtime/session/sequences.h"

namespace arn {

class Recompute {
 public:
  // All arguments must outlive the part.
  Recompute(SessionCore* core, Executor* executor, Sequences* sequences)
      : core_(*core), executor_(*executor), sequences_(*sequences) {}

  // Switches to the fallback backend for a failure that the core's diag explains. Its KV pages are
  // empty: for callers that replace or run all tokens anyway.
  // REQUIRES: executor.CanFallBack(failure).
  void SwitchToFallback(Status failure);
  // Switches to the fallback backend and recomputes the tokens of all sequences; keeps their
  // logits. On failure returns kDeviceLost and empties all sequences.
  // REQUIRES: executor.CanFallBack(failure).
  Status FallBack(Status failure);
  // Returns kDeviceLost and empties all sequences: their encoder output cannot be recomputed.
  Status LoseEncoderOutputs();

 private:
  // wants_logits: also compute the logits of each sequence's last token.
  Status ComputeAnew(bool wants_logits);
  Status ComputeUpTo(uint32_t sequence, uint32_t end, LogitRows of_last);
  KvCache& cache() { return sequences_.cache(); }
  LogitsState& logits() { return sequences_.logits(); }

  SessionCore& core_;
  Executor& executor_;
  Sequences& sequences_;
};

}  // namespace arn
