// Logits of the sequences: location, recomputation and sampling.
#include <cstring>

#include "runtime/session/session.h"

namespace arn {

float* Session::LogitsOf(uint32_t sequence) const {
  const uint64_t vocab = plan_.program.vocab;
  if (sequences_.size() > 1) return memory_.As<float>(plan_.sequence_logits) + sequence * vocab;
  return memory_.As<float>(plan_.program.logits) + logits_row_ * vocab;
}

// The next run overwrites the rows, so with several sequences each copies its own.
void Session::KeepLogits(Span<const Part> parts) {
  const uint64_t vocab = plan_.program.vocab;
  const float* row = memory_.As<float>(plan_.program.logits);
  logits_row_ = 0;
  for (const Part& part : parts) {
    Sequence& sequence = At(part.sequence);
    if (sequences_.size() > 1) {
      std::memcpy(LogitsOf(part.sequence), row, vocab * sizeof(float));
    }
    sequence.has_logits = true;
    sequence.random_before = sequence.sampler.random_state();
    row += vocab;
  }
}

Status Session::FetchLogits() {
  if (logits_at_ != LogitsAt::kBackend) return Status::kOk;
  if (best_id_ != kNotFound) wants_logits_ = true;
  const Status status =
      in_use_->backend->read_logits(in_use_->state, {LogitsOf(0), plan_.program.vocab}, &diag_);
  if (status == Status::kOk) logits_at_ = LogitsAt::kBoth;
  // While device steps run, the decode loop itself falls back.
  if (is_decoding_ || !CanFallBack(status)) return status;
  return FallBack(status);
}

Status Session::NeedLogits(uint32_t sequence) {
  if (At(sequence).has_logits) return Status::kOk;
  if (IsAtEnd(sequence)) return ContextFullError(sequence);
  if (cache_.length(sequence) == 0 || is_in_callback_) {
    return diag_.Fail(Status::kBadState, "sequence %u has no logits: prefill first", sequence);
  }
  return RunLastAgain(sequence);
}

// The token stays in the sequence whatever happens: the run is not cancellable, and fails before it
// starts if a page is missing.
Status Session::RunLastAgain(uint32_t sequence) {
  const uint32_t last = cache_.length(sequence) - 1;
  if (!plan_.options.no_cache) {
    if (last < cache_.FirstRewindPosition(sequence)) {
      return diag_.Fail(Status::kBadState,
                        "sequence %u has no logits, and its last token, at position %u, cannot run "
                        "again: %s; prefill one more token first",
                        sequence, last,
                        HasState() ? "the model has layers whose state cannot be turned back"
                                   : "the pages that a window sees from there are gone");
    }
    if (!cache_.CanRepeatLast(sequence)) {
      return diag_.Fail(Status::kContextFull,
                        "sequence %u has no logits, and no KV page is free to run its last token "
                        "again beside the sequences that share it",
                        sequence);
    }
  }
  const int32_t id = History(sequence)[last];
  const Part part{sequence, {&id, 1}};
  const LoadedBackend* before = in_use_;
  cache_.Cut(sequence, last);
  is_cancellable_ = plan_.options.no_cache;
  const Status status = plan_.options.no_cache ? RunWithoutCache(part, LogitRows::kLastOfEach)
                                               : RunWithCache({&part, 1}, LogitRows::kLastOfEach);
  is_cancellable_ = true;
  if (status == Status::kOk) {
    Committed({&part, 1}, LogitRows::kLastOfEach);
  } else if (in_use_ == before) {
    const Growth growth{sequence, 1};
    cache_.Commit(Span<const Growth>(&growth, 1));
  }
  return status == Status::kOk ? status : RunError(status, sequence);
}

Status Session::Logits(const float** out_logits) {
  *out_logits = nullptr;
  ARN_TRY(NeedLogits(selected_));
  ARN_TRY(FetchLogits());
  *out_logits = LogitsOf(selected_);
  return Status::kOk;
}

Status Session::SetSampling(const SamplingOptions& options) {
  ARN_TRY(CheckSampling(options, &diag_));
  At(selected_).sampler.Configure(options);
  return Status::kOk;
}

Status Session::Choose(uint32_t sequence, int32_t* out_id) {
  Sampler& sampler = At(sequence).sampler;
  At(sequence).random_before = sampler.random_state();
  if (logits_at_ == LogitsAt::kBackend && best_id_ != kNotFound &&
      sampler.options().temperature == 0.0f) {
    *out_id = best_id_;
    return Status::kOk;
  }
  ARN_TRY(FetchLogits());
  *out_id = sampler.Sample(LogitsOf(sequence));
  return Status::kOk;
}

void Session::Unchoose(uint32_t sequence) {
  At(sequence).sampler.set_random_state(At(sequence).random_before);
}

Status Session::Sample(int32_t* out_id) {
  ARN_TRY(NeedLogits(selected_));
  return Choose(selected_, out_id);
}

}  // namespace arn
