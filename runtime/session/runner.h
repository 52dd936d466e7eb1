// Runner: runs tokens of the sequences on the backend in use. Reserves their pages, runs them, and
// records what ran; falls back if the device fails.
#pragma once

#include <cstdint>

#include "platform/base/span.h"
#include "platform/base/status.h"
#include "runtime/session/core.h"
#include "runtime/session/executor.h"
#include "runtime/session/kv_pager.h"
#include "runtime/session/recompute.h"
#include "runtime/session/run_observer.h"
#include "runtime/session/sequences.h"
#include "runtime/session/throttle.h"

namespace arn {

class Runner {
 public:
  // All arguments must outlive the part.
  Runner(SessionCore* core, Executor* executor, Sequences* sequences, Throttle* throttle,
         Recompute* recompute)
      : core_(*core),
        executor_(*executor),
        sequences_(*sequences),
        throttle_(*throttle),
        recompute_(*recompute) {}

  // Executes one run and appends its tokens to the sequences. Sleeps first as the throttle
  // requires. Pending tokens run with it, as the first rows of their part, if they fit a run, or
  // before in runs of their own. A failed run leaves sequences and logits unchanged, unless it is
  // kDeviceLost. REQUIRES: sequences are distinct, their tokens fit.
  Status Run(Span<const SessionPart> parts, LogitRows logit_rows);
  // Runs pending tokens of a sequence until a single run can take the others along with `beside`
  // more; all of them if that is 0. A failure leaves pending what has not run.
  Status RunPending(uint32_t sequence, uint32_t beside);
  // Returns the tokens that the next run of the sequence should take, pending ones included: a
  // chunk, up to where a snapshot is due.
  uint32_t RunTokens(uint32_t sequence) const;
  // Runs a sequence's last token again, for its logits: alone, or after all that follow the last
  // snapshot of its recurrent states. kBadState if it cannot run, kContextFull if no page is free
  // for it. REQUIRES: the sequence is not empty.
  Status RunLastAgain(uint32_t sequence);
  // Applies what the cache wants done to the pages.
  Status RunEdits();
  // Drops the oldest tokens when the sequence is full and its overflow policy allows it. Otherwise
  // kContextFull.
  Status MakeRoomForOne(uint32_t sequence);

  // Returns kCancelled and clears the request if a cancel is pending.
  Status HeedCancel(uint32_t sequence);
  // Returns the status of a run; explains it if it is kCancelled.
  Status RunError(Status status, uint32_t sequence);

  // Notifies it of every run of one sequence with a cache. Null: nobody. It must outlive the part.
  void SetObserver(RunObserver* observer) { observer_ = observer; }
  // Calls `before` (AttentionObserver) in every run. Null: nobody. REQUIRES: a backend in use with
  // host_kv.
  void ObserveAttention(decltype(AttentionObserver::before) before, void* user) {
    attention_observer_ = {before, user, pager_.attention_observer()};
  }

  // Pages of a KV file, if the session has one.
  KvPager& pager() { return pager_; }
  const KvPager& pager() const { return pager_; }

 private:
  bool FitWithPending(Span<const SessionPart> parts) const;
  Status RunWithCache(Span<const SessionPart> parts, LogitRows logit_rows);
  Status TryWithCache(Span<const SessionPart> parts, LogitRows logit_rows);
  Status RunLastFromSnapshot(uint32_t sequence);
  Status RunWithoutCache(const SessionPart& part, LogitRows logit_rows);
  Status RunBackend(Span<const SessionPart> parts, size_t n_tokens, LogitRows logit_rows,
                    const RowMask* mask);
  // Decides which logits the run keeps of a single sequence. *best: receives the argmax if the
  // backend computes it.
  void AskForLogits(RunArgs* args, int32_t* best);
  // Lets the backend copy the logits of several sequences to where each keeps its own.
  void AskForCopies(Span<const SessionPart> parts, LogitRows logit_rows);
  // Records a successful run: appends its token ids and marks which sequences have logits.
  void Committed(Span<const SessionPart> parts, LogitRows logit_rows);
  void KeepLogits(Span<const SessionPart> parts);
  Status Shift(uint32_t sequence);
  KvCache& cache() { return sequences_.cache(); }
  LogitsState& logits() { return sequences_.logits(); }

  SessionCore& core_;
  Executor& executor_;
  Sequences& sequences_;
  Throttle& throttle_;
  Recompute& recompute_;
  KvPager pager_;
  RunObserver* observer_ = nullptr;
  AttentionObserver attention_observer_;
  bool is_cancellable_ = true;  // false while a token runs again that is already in its sequence
};

}  // namespace arn
