// Prefiller: runs prompts in chunks.
#pragma once

#include <cstdint>

#include "platform/base/span.h"
#include "platform/base/status.h"
#include "runtime/session/core.h"
#include "runtime/session/runner.h"
#include "runtime/session/sequences.h"

namespace arn {

class Prefiller {
 public:
  // All arguments must outlive the part.
  Prefiller(SessionCore* core, Sequences* sequences, Runner* runner)
      : core_(*core), sequences_(*sequences), runner_(*runner) {}

  // Appends the tokens to the selected sequence, with logits of the last one. kContextFull if they
  // do not fit; kCancelled keeps the chunks that ran.
  Status Prefill(Span<const int32_t> ids);
  // As above for one chunk, with the logits of all of its tokens: f32 [ids, vocab], valid until the
  // next run. kBadState unless the session has all_logits.
  Status PrefillLogits(Span<const int32_t> ids, const float** out_logits);

 private:
  // Number of prefill tokens for the next run, at least one. Shifts when the context is full.
  Status NextChunk(uint32_t sequence, size_t left, size_t* out_tokens);
  KvCache& cache() { return sequences_.cache(); }
  LogitsState& logits() { return sequences_.logits(); }

  SessionCore& core_;
  Sequences& sequences_;
  Runner& runner_;
};

}  // namespace arn
