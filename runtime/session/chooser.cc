#include "runtime/session/chooser.h"

namespace arn {

Status Chooser::Need(uint32_t sequence) {
  if (logits().Has(sequence)) return Status::kOk;
  if (sequences_.IsAtEnd(sequence)) return sequences_.ContextFullError(sequence);
  if (cache().length(sequence) == 0 || core_.is_in_callback) {
    return core_.diag.Fail(Status::kBadState, "sequence %u has no logits: prefill first", sequence);
  }
  return runner_.RunLastAgain(sequence);
}

Status Chooser::Fetch() {
  if (!logits().MustRead()) return Status::kOk;
  if (logits().best_id() != LogitsState::kNoToken) logits().WantAll();
  const Status status = executor_.ReadLogits({sequences_.LogitsOf(0), core_.plan.program.vocab});
  if (status == Status::kOk) logits().EndRead();
  // While device steps run, the decode loop itself falls back.
  if (logits().is_stepping() || !executor_.CanFallBack(status)) return status;
  return recompute_.FallBack(status);
}

Status Chooser::ChooseConstrained(uint32_t sequence, int32_t* out_id) {
  Sampler& sampler = sequences_.At(sequence).sampler;
  ARN_TRY(constrainer_.Read(sequence));
  const Span<const int32_t> forced = constrainer_.ForcedIds(sequence);
  const int32_t best = logits().best_id();
  const bool takes_best = best != LogitsState::kNoToken && sampler.options().temperature == 0.0f;
  if (!forced.empty() || (takes_best && constrainer_.Allows(sequence, best))) {
    *out_id = forced.empty() ? best : forced[0];
    constrainer_.EndStep(sequence);
    return Status::kOk;
  }
  ARN_TRY(Fetch());
  return constrainer_.Choose(sequence, sequences_.LogitsOf(sequence), &sampler, out_id);
}

Status Chooser::Choose(uint32_t sequence, int32_t* out_id) {
  Sampler& sampler = sequences_.At(sequence).sampler;
  sequences_.At(sequence).random_before = sampler.random_state();
  if (constrainer_.Has(sequence)) return ChooseConstrained(sequence, out_id);
  const int32_t best = logits().best_id();
  if (best != LogitsState::kNoToken && sampler.options().temperature == 0.0f) {
    *out_id = best;
    return Status::kOk;
  }
  ARN_TRY(Fetch());
  *out_id = sampler.Sample(sequences_.LogitsOf(sequence));
  return Status::kOk;
}

void Chooser::Unchoose(uint32_t sequence) {
  sequences_.At(sequence).sampler.set_random_state(sequences_.At(sequence).random_before);
}

}  // namespace arn
