// Beam search: each running beam is a sequence, each step one run.
#include <cstring>

#include "platform/base/arith.h"
#include "runtime/session/session.h"
#include "runtime/session/timer.h"

namespace arn {

// Collects the stop token ids of the model and the caller, without duplicates.
Status Session::CollectStopIds(const BeamRequest& request, BeamOptions* options) {
  options->n_stop_ids = 0;
  if (request.ignore_eos) return Status::kOk;
  const auto add = [&](int32_t id) {
    for (uint32_t i = 0; i < options->n_stop_ids; ++i) {
      if (options->stop_ids[i] == id) return Status::kOk;
    }
    if (options->n_stop_ids == kMaxBeamStopIds) {
      return diag_.Fail(Status::kUnsupported, "a beam search has at most %u end tokens",
                        kMaxBeamStopIds);
    }
    options->stop_ids[options->n_stop_ids++] = id;
    return Status::kOk;
  };
  for (uint32_t eos : model_.eos_ids) ARN_TRY(add(static_cast<int32_t>(eos)));
  for (int32_t eos : request.extra_eos_ids) ARN_TRY(add(eos));
  return Status::kOk;
}

// Reorders the sequences by their parent beams, with their ids. None has logits afterwards.
// Sampling options stay with the sequence index.
Status Session::Reorder(Span<const uint32_t> parents) {
  ARN_TRY(cache_.Reorder(0, parents));
  uint32_t n_ids = 0;
  for (uint32_t s = 0; s < parents.size(); ++s) n_ids = Max(n_ids, cache_.length(s));
  const auto ids = [&](uint32_t sequence) {
    return sequence == cache_.n_sequences() ? memory_.As<int32_t>(plan_.scratch_history)
                                            : History(sequence);
  };
  for (const RowMove& move : cache_.moves()) {
    std::memcpy(ids(move.to), ids(move.from), n_ids * sizeof(int32_t));
  }
  for (uint32_t s = 0; s < parents.size(); ++s) At(s).has_logits = false;
  return Status::kOk;
}

void Session::ClearSequences(uint32_t first, uint32_t last) {
  for (uint32_t s = first; s < last; ++s) {
    cache_.Clear(s);
    At(s).has_logits = false;
  }
}

Status Session::BeamSteps(uint32_t num_beams, BeamResult* out) {
  auto* sequences = memory_.As<uint32_t>(plan_.beam_sequences);
  auto* logits = memory_.As<const float*>(plan_.beam_logits);
  // The first beam of every group is the prompt itself.
  uint32_t n = beams_.n_running();
  for (uint32_t i = 0; i < n; ++i) logits[i] = LogitsOf(selected_);
  for (bool is_first = true;; is_first = false) {
    beams_.Step({logits, n});
    out->n_steps = beams_.n_steps();
    n = beams_.n_running();
    if (n == 0) return Status::kOk;
    for (uint32_t i = 0; i < n; ++i) sequences[i] = is_first ? selected_ : beams_.parents()[i];
    ARN_TRY(Reorder({sequences, n}));
    // Free the pages of dropped beams before the run reserves new ones.
    ClearSequences(n, num_beams);
    for (uint32_t i = 0; i < n; ++i) {
      sequences[i] = i;
      logits[i] = LogitsOf(i);
    }
    ARN_TRY(StepBatch({sequences, n}, beams_.ids()));
    ARN_TRY(FetchLogits());
    out->kv_peak_bytes = Max(out->kv_peak_bytes, kv_used_bytes());
  }
}

Status Session::SearchBeams(const BeamRequest& request, BeamResult* out) {
  *out = BeamResult();
  beams_.Forget();
  ARN_TRY(NeedLogits(selected_));
  BeamOptions options = request.options;
  // The last token of a sequence does not run.
  const uint32_t room = cache_.capacity() - length() + 1;
  if (options.max_tokens == 0) options.max_tokens = Min(room, plan_.beams.max_tokens);
  ARN_TRY(CollectStopIds(request, &options));
  if (options.max_tokens > room) {
    return diag_.Fail(Status::kContextFull,
                      "beams of %u tokens after %u do not fit a context of %u", options.max_tokens,
                      length(), cache_.capacity());
  }
  ARN_TRY(CheckBeams(options, plan_.beams, &diag_));
  for (uint32_t s = 0; s < options.num_beams; ++s) {
    if (s != selected_ && cache_.length(s) != 0) {
      return diag_.Fail(Status::kBadState,
                        "sequence %u has %u tokens, %u beams need sequences 0 to %u empty", s,
                        cache_.length(s), options.num_beams, options.num_beams - 1);
    }
  }
  ARN_TRY(FetchLogits());
  out->kv_peak_bytes = kv_used_bytes();
  beams_.Start(options);
  const Status status = BeamSteps(options.num_beams, out);
  ClearSequences(0, options.num_beams);
  if (status != Status::kOk) beams_.Forget();
  out->n_sequences = beams_.n_results();
  return status;
}

Status Session::Beam(uint32_t index, Span<int32_t> out_ids, size_t* out_count,
                     float* out_score) const {
  *out_count = 0;
  if (index >= beams_.n_results()) {
    return diag_.Fail(Status::kBadArgument, "sequence %u, the beam search has %u", index,
                      beams_.n_results());
  }
  *out_count = beams_.length(index);
  *out_score = beams_.score(index);
  if (out_ids.size() < *out_count) return Status::kBufferTooSmall;
  beams_.CopyIds(index, out_ids.data());
  return Status::kOk;
}

}  // namespace arn
