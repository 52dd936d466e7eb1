// Decoding on the device: the device samples and runs several tokens before the host sees them.
// Must give the same tokens and the same final sequence as sampling on the host.
#include "platform/base/arith.h"
#include "platform/os/clock.h"
#include "runtime/session/session.h"

namespace arn {

// Excludes the cases that need the host between tokens: several sequences keep their logits in host
// memory; no_cache re-runs the whole sequence; profile and observer cover one run each; pacing
// sleeps between tokens.
bool Session::CanChooseOnDevice() const {
  return in_use_->backend->decode != nullptr && logits_at_ != LogitsAt::kHost &&
         sequences_.size() == 1 && !plan_.options.no_cache && !profile_.is_on() &&
         on_matmul_ == nullptr && !pacer_.is_on();
}

void Session::CommitStep(StepsOnDevice* steps) {
  cache_.ReleaseUnseen(selected_);
  const SequenceRows rows = {0, 1, length(), cache_.tables(selected_),
                             cache_.encoder_rows(selected_)};
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
  if (!CanChooseOnDevice() || steps->stop_ids.size() > DecodeArgs::kMaxStopIds) return Status::kOk;
  // Reserving several steps at once must equal reserving token by token: no page may be quantised
  // and no context may shift in between.
  const uint32_t fitting =
      Min(cache_.capacity() - length(), cache_.TokensBeforeQuantising(selected_));
  Growth growth{selected_, Min(Min(steps->wanted, fitting),
                               Min(DecodeArgs::kMaxSteps, plan_.program.max_rows))};
  const Span<const Growth> grown(&growth, 1);
  Status status = cache_.Reserve(grown);
  if (status == Status::kContextFull && growth.n_tokens > 1) {
    growth.n_tokens = 1;
    status = cache_.Reserve(grown);
  }
  // If not even one token fits, the host path reports it after it has shown the token.
  if (status == Status::kContextFull) return Status::kOk;
  ARN_TRY(status);

  struct TokenObserver {
    Session* session;
    StepsOnDevice* steps;
    uint32_t n_tokens;
  } observer = {this, steps, 0};
  uint32_t rng[DecodeArgs::kMaxSteps];
  Sequence& sequence = At(selected_);
  const SamplingOptions& sampling = sequence.sampler.options();
  DecodeArgs args;
  args.edits = cache_.edits();
  args.sequence = {0, 1, length(), cache_.tables(selected_), cache_.encoder_rows(selected_)};
  args.n_steps = growth.n_tokens;
  args.rule = {sampling.temperature, sampling.top_k, sampling.top_p, sampling.min_p};
  sequence.sampler.PeekDraws({rng, growth.n_tokens});
  args.rng = {rng, growth.n_tokens};
  args.stop_ids = steps->stop_ids;
  args.cancel = &cancel_;
  args.user = &observer;
  // A token is in the sequence once the next one has been chosen, because only then has it run.
  args.on_token = [](void* user, int32_t id) {
    auto& s = *static_cast<TokenObserver*>(user);
    if (s.n_tokens++ != 0) s.session->CommitStep(s.steps);
    s.steps->last_id = id;
    s.session->logits_at_ = LogitsAt::kBackend;
    return s.steps->generation == nullptr || s.session->DeliverAndContinue(id, s.steps->generation);
  };
  DecodeResult result;
  is_decoding_ = true;
  status = in_use_->backend->decode(in_use_->state, args, &result, &diag_);
  is_decoding_ = false;
  steps->is_taken = true;
  steps->ended = result.ended;
  cache_.ClearEdits();
  if (status == Status::kOk && result.n_tokens != 0) {
    CommitStep(steps);
    logits_at_ = LogitsAt::kBackend;
  }
  cache_.Cut(selected_, length());  // releases what unused steps had reserved
  const uint32_t n_ended = result.ended ? 1 : 0;
  if (status == Status::kOk) {
    sequence.sampler.SkipDraws(result.n_tokens + n_ended);
    return status;
  }

  // The last token returned has not run: the logits are the ones it was chosen from, and its random
  // number is not consumed.
  if (result.n_tokens != 0) sequence.sampler.SkipDraws(result.n_tokens - 1);
  if (status == Status::kCancelled) {
    cancel_.store(0, std::memory_order_relaxed);
    return RunError(status, selected_);
  }
  if (!CanFallBack(status)) {
    sequence.has_logits = false;
    return status;
  }
  ARN_TRY(FallBack(status));
  if (result.n_tokens == 0) {
    sequence.sampler.SkipDraws(n_ended);
    steps->is_taken = result.ended;
    return Status::kOk;
  }
  ARN_TRY(RunOne(selected_, steps->last_id));
  sequence.sampler.SkipDraws(1 + n_ended);
  ++steps->n_run;
  return Status::kOk;
}

}  // namespace arn
