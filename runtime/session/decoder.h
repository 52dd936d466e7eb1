// Decoder: chooses tokens and runs them: one on the host, several at once on the device, or one of
// each of several sequences.
#pragma once

#include <cstdint>

#include "platform/base/span.h"
#include "platform/base/status.h"
#include "runtime/session/chooser.h"
#include "runtime/session/constrainer.h"
#include "runtime/session/core.h"
#include "runtime/session/executor.h"
#include "runtime/session/recompute.h"
#include "runtime/session/runner.h"
#include "runtime/session/sequences.h"
#include "runtime/session/throttle.h"

namespace arn {

class Decoder {
 public:
  // All arguments must outlive the part.
  Decoder(SessionCore* core, Executor* executor, Sequences* sequences, Constrainer* constrainer,
          Throttle* throttle, Recompute* recompute, Runner* runner, Chooser* chooser)
      : core_(*core),
        executor_(*executor),
        sequences_(*sequences),
        constrainer_(*constrainer),
        throttle_(*throttle),
        recompute_(*recompute),
        runner_(*runner),
        chooser_(*chooser) {}

  // Decode steps of the selected sequence that the device samples and runs.
  struct StepsOnDevice {
    uint32_t wanted = 1;  // at most
    Span<const int32_t> stop_ids;
    // Receives each token; returns false to stop after it. May be null.
    bool (*on_token)(void* user, int32_t id) = nullptr;
    void* user = nullptr;
    bool is_taken = false;  // false: no step ran, the host must choose the next token
    uint32_t n_run = 0;
    bool ended = false;  // stopped by one of `stop_ids`
    int32_t last_id = 0;
  };

  // Samples the selected sequence's next token and runs it.
  Status Decode(int32_t* out_id);
  // Runs a token that was just chosen. Undoes the choice if the run fails.
  Status RunChosen(uint32_t sequence, int32_t id);
  // Runs tokens that follow from the constraint, in one run. REQUIRES: they fit a chunk.
  Status RunForced(uint32_t sequence, Span<const int32_t> ids);
  // Runs as many of the steps as fit one call of the backend, before the host sees their tokens.
  // Gives the same tokens and the same final sequence as sampling on the host. REQUIRES: the
  // selected sequence has logits and room for one token.
  Status RunOnDevice(StepsOnDevice* steps);
  // True if the device can choose the selected sequence's next token.
  bool CanChooseOnDevice() const;
  // Runs one token for each of the given sequences in a single run.
  Status StepBatch(Span<const uint32_t> sequences, Span<const int32_t> ids);
  // Samples and runs the next token of each of the given sequences. out_ids: [sequences].
  Status DecodeBatch(Span<const uint32_t> sequences, Span<int32_t> out_ids);

 private:
  // Appends the token that the device ran last to the sequence.
  void CommitStep(StepsOnDevice* steps);
  Status RunOne(uint32_t sequence, int32_t id);
  KvCache& cache() { return sequences_.cache(); }
  LogitsState& logits() { return sequences_.logits(); }

  SessionCore& core_;
  Executor& executor_;
  Sequences& sequences_;
  Constrainer& constrainer_;
  Throttle& throttle_;
  Recompute& recompute_;
  Runner& runner_;
  Chooser& chooser_;
};

}  // namespace arn
