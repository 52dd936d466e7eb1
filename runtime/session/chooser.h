// Chooser: makes a sequence's logits available and samples its next token from them.
#pragma once

#include <cstdint>

#include "platform/base/status.h"
#include "runtime/session/constrainer.h"
#include "runtime/session/core.h"
#include "runtime/session/executor.h"
#include "runtime/session/recompute.h"
#include "runtime/session/runner.h"
#include "runtime/session/sequences.h"

namespace arn {

class Chooser {
 public:
  // All arguments must outlive the part.
  Chooser(SessionCore* core, Executor* executor, Sequences* sequences, Constrainer* constrainer,
          Recompute* recompute, Runner* runner)
      : core_(*core),
        executor_(*executor),
        sequences_(*sequences),
        constrainer_(*constrainer),
        recompute_(*recompute),
        runner_(*runner) {}

  // Ensures the logits of a sequence's last token exist, on the host or on the backend; re-runs
  // that token if needed. kBadState if it cannot run or the sequence is empty; kContextFull at the
  // end of the context.
  Status Need(uint32_t sequence);
  // Copies a single sequence's logits from the backend to host memory if they are not there.
  Status Fetch();
  // Samples a token, among those that its constraint allows if it has one. REQUIRES: the sequence
  // has logits.
  Status Choose(uint32_t sequence, int32_t* out_id);
  // Undoes the last choice.
  void Unchoose(uint32_t sequence);

 private:
  Status ChooseConstrained(uint32_t sequence, int32_t* out_id);
  KvCache& cache() { return sequences_.cache(); }
  LogitsState& logits() { return sequences_.logits(); }

  SessionCore& core_;
  Executor& executor_;
  Sequences& sequences_;
  Constrainer& constrainer_;
  Recompute& recompute_;
  Runner& runner_;
};

}  // namespace arn
