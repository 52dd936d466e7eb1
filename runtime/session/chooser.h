// Chooser: makes a sequence's logits available and samples its next token from them.
#pragma once

#include <cstdint>

#include "platform/base/status.h"
#include "runtime/sampling/processors.h"
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

  void Init();
  // Ensures the logits of a sequence's last token exist, on the host or on the backend; re-runs
  // that token if needed. kBadState if it cannot run or the sequence is empty; kContextFull at the
  // end of the context.
  Status Need(uint32_t sequence);
  // Copies a single sequence's logits from the backend to host memory if they are not there.
  // kCancelled, with the logits left where they are, if `cancel` is set meanwhile.
  Status Fetch(const std::atomic<uint32_t>* cancel = nullptr);
  // Facts that a choice may depend on besides the sequence.
  struct Request {
    Span<const int32_t> extra_eos_ids;  // stop tokens besides the model's
    bool is_last = false;               // no token may follow the chosen one
  };
  // Samples a token, among those that its constraint allows if it has one. REQUIRES: the sequence
  // has logits.
  Status Choose(uint32_t sequence, int32_t* out_id) { return Choose(sequence, Request(), out_id); }
  Status Choose(uint32_t sequence, const Request& request, int32_t* out_id);
  // The processors of all choices. REQUIRES: memory was planned for them.
  LogitsProcessors& processors() { return processors_; }
  // Undoes the last choice.
  void Unchoose(uint32_t sequence);

 private:
  KvCache& cache() { return sequences_.cache(); }
  LogitsState& logits() { return sequences_.logits(); }

  SessionCore& core_;
  Executor& executor_;
  Sequences& sequences_;
  Constrainer& constrainer_;
  Recompute& recompute_;
  Runner& runner_;
  LogitsProcessors processors_;
};

}  // namespace arn
