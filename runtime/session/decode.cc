// Decoding where the logits are: the device chooses tokens and runs them, several steps ahead of
// what the host has seen. What comes out is what choosing on the host would give: the same tokens,
// and the sequence ends where it ended there.
#include "platform/base/arith.h"
#include "platform/os/clock.h"
#include "runtime/session/session.h"

namespace arn {

// One token at a time, by the host: of several sequences each keeps its logits in host memory;
// without a cache each run begins with the first token; a profile and an observer are of one run
// each; and one that is paced sleeps between its tokens.
bool Session::CanChooseOnDevice() const {
  return in_use_->backend->decode != nullptr && logits_at_ != LogitsAt::kHost &&
         sequences_.size() == 1 && !plan_.options.no_cache && !profile_.is_on() &&
         seen_ == nullptr && !pacer_.is_on();
}

void Session::CommitStep(StepsOnDevice* steps) {
  cache_.ReleaseUnseen(selected_);
  const SequenceRows rows = {0, 1, length(), cache_.tables(selected_),
                             cache_.source_rows(selected_)};
  RunArgs args;
  args.tokens = {&steps->last_id, 1};
  args.sequences = {&rows, 1};
  CountWork(args);
  if (watch_.is_open()) watch_.Sample(MonotonicNs());
  const Growth growth{selected_, 1};
  cache_.Commit(Span<const Growth>(&growth, 1));
  Remember({selected_, {&steps->last_id, 1}});
  ++stats_.decode_tokens;
  ++steps->n_run;
}

Status Session::DecodeOnDevice(StepsOnDevice* steps) {
  steps->is_taken = false;
  if (!CanChooseOnDevice() || steps->ends.size() > DecodeArgs::kMaxEnds) return Status::kOk;
  // What is reserved ahead must be what reserving token by token would give: no page is sealed in
  // between, and no context shifts.
  const uint32_t fitting = Min(cache_.capacity() - length(), cache_.TokensBeforeSeal(selected_));
  Growth growth{selected_, Min(Min(steps->wanted, fitting),
                               Min(DecodeArgs::kMaxSteps, plan_.program.max_rows))};
  const Span<const Growth> grown(&growth, 1);
  Status status = cache_.Reserve(grown);
  if (status == Status::kContextFull && growth.n_tokens > 1) {
    growth.n_tokens = 1;
    status = cache_.Reserve(grown);
  }
  // When not even one fits, the host's way says so, after it has shown the token.
  if (status == Status::kContextFull) return Status::kOk;
  ARN_TRY(status);

  struct Seer {
    Session* session;
    StepsOnDevice* steps;
    uint32_t n_seen;
  } seer = {this, steps, 0};
  uint32_t draws[DecodeArgs::kMaxSteps];
  Sequence& sequence = At(selected_);
  const SamplingOptions& sampling = sequence.sampler.options();
  DecodeArgs args;
  args.edits = cache_.edits();
  args.sequence = {0, 1, length(), cache_.tables(selected_), cache_.source_rows(selected_)};
  args.n_steps = growth.n_tokens;
  args.rule = {sampling.temperature, sampling.top_k, sampling.top_p, sampling.min_p};
  sequence.sampler.PeekDraws({draws, growth.n_tokens});
  args.draws = {draws, growth.n_tokens};
  args.ends = steps->ends;
  args.cancel = &cancel_;
  args.user = &seer;
  // A token is in the sequence once the next one was chosen: then it has run.
  args.see = [](void* user, int32_t id) {
    auto& s = *static_cast<Seer*>(user);
    if (s.n_seen++ != 0) s.session->CommitStep(s.steps);
    s.steps->last_id = id;
    s.session->logits_at_ = LogitsAt::kBackend;
    return s.steps->generation == nullptr || s.session->Show(id, s.steps->generation);
  };
  DecodeResult result;
  is_decoding_ = true;
  status = in_use_->backend->decode(in_use_->state, args, &result, &diag_);
  is_decoding_ = false;
  steps->is_taken = true;
  steps->ended = result.ended;
  sequence.sampler.SkipDraws(result.n_seen + (result.ended ? 1 : 0));
  cache_.ClearEdits();
  if (status == Status::kOk && result.n_seen != 0) {
    CommitStep(steps);
    logits_at_ = LogitsAt::kBackend;
  }
  cache_.Cut(selected_, length());  // what steps that never were have reserved
  if (status == Status::kOk) return status;

  // The last token that was seen has not run.
  if (result.n_seen != 0 || !CanFallBack(status)) sequence.has_logits = false;
  if (status == Status::kCancelled) {
    cancel_.store(0, std::memory_order_relaxed);
    return Failed(status, selected_);
  }
  if (!CanFallBack(status)) return status;
  ARN_TRY(FallBack(status));
  if (result.n_seen == 0) {
    steps->is_taken = result.ended;
    return Status::kOk;
  }
  ARN_TRY(RunOne(selected_, steps->last_id));
  ++steps->n_run;
  return Status::kOk;
}

}  // namespace arn
