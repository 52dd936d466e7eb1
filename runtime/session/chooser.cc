#include "runtime/session/chooser.h"

#include <limits>

namespace arn {

void Chooser::Init() {
  processors_.Init(core_.plan.processors, core_.memory, core_.plan.program.vocab);
}

Status Chooser::Need(uint32_t sequence) {
  if (logits().Has(sequence)) return Status::kOk;
  if (sequences_.IsAtEnd(sequence)) return sequences_.ContextFullError(sequence);
  if (sequences_.Length(sequence) == 0 || core_.is_in_callback) {
    return core_.diag.Fail(Status::kBadState, "sequence %u has no logits: prefill first", sequence);
  }
  return runner_.RunLastAgain(sequence);
}

Status Chooser::Fetch(const std::atomic<uint32_t>* cancel) {
  if (!logits().MustRead()) return Status::kOk;
  if (logits().best_id() != LogitsState::kNoToken) logits().WantAll();
  const Status status =
      executor_.ReadLogits({sequences_.LogitsOf(0), core_.plan.program.vocab}, cancel);
  if (status == Status::kOk) logits().EndRead();
  if (status == Status::kCancelled) {
    core_.ClearCancel();
    return runner_.RunError(status, 0);
  }
  // While device steps run, the decode loop itself falls back.
  if (logits().is_stepping() || !executor_.CanFallBack(status)) return status;
  return recompute_.FallBack(status);
}

Status Chooser::Choose(uint32_t sequence, const Request& request, int32_t* out_id) {
  Sampler& sampler = sequences_.At(sequence).sampler;
  sequences_.At(sequence).state_before = sampler.state();
  const bool is_constrained = constrainer_.Has(sequence);
  const int32_t best = sequences_.BestOf(sequence);
  const bool takes_best = best != LogitsState::kNoToken && sampler.takes_best();
  if (is_constrained) {
    ARN_TRY(constrainer_.Read(sequence));
    const Span<const int32_t> forced = constrainer_.ForcedIds(sequence);
    if (!forced.empty() || (takes_best && constrainer_.Allows(sequence, best))) {
      *out_id = forced.empty() ? best : forced[0];
      constrainer_.EndStep(sequence);
      return Status::kOk;
    }
  } else if (takes_best) {
    *out_id = best;
    return Status::kOk;
  }
  ARN_TRY(Fetch(&core_.cancel));
  const float* row = sequences_.LogitsOf(sequence);
  if (sampler.has_processors()) {
    const ProcessorInput input{sequences_.PlainIds(sequence), sequences_.At(sequence).n_generated,
                               core_.model.eos_ids, request.extra_eos_ids,
                               request.is_last || sequences_.IsAtLast(sequence)};
    row = processors_.Apply(sampler.options(), input, row);
  }
  if (is_constrained) return constrainer_.Choose(sequence, row, &sampler, out_id);
  *out_id = sampler.Sample(row);
  if (sampler.has_processors() && row[*out_id] == -std::numeric_limits<float>::infinity()) {
    Unchoose(sequence);
    return core_.diag.Fail(Status::kBadState,
                           "sequence %u: the sampling options forbid every token here", sequence);
  }
  return Status::kOk;
}

void Chooser::Unchoose(uint32_t sequence) {
  sequences_.At(sequence).sampler.set_state(sequences_.At(sequence).state_before);
}

}  // namespace arn
