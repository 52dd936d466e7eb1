#include "runtime/session/beam_driver.h"

#include <cstring>

#include "platform/base/arith.h"
#include "runtime/sampling/logprobs.h"

namespace arn {

void BeamDriver::Init(const LogitsOps* ops) {
  beams_.Init(ops, core_.plan.beams, core_.memory, core_.plan.program.vocab);
}

// Collects the stop token ids of the model and the caller, without duplicates.
Status BeamDriver::CollectStopIds(const BeamRequest& request, BeamOptions* options) {
  options->n_stop_ids = 0;
  if (request.ignore_eos) return Status::kOk;
  const auto add = [&](int32_t id) {
    for (uint32_t i = 0; i < options->n_stop_ids; ++i) {
      if (options->stop_ids[i] == id) return Status::kOk;
    }
    if (options->n_stop_ids == kMaxBeamStopIds) {
      return core_.diag.Fail(Status::kUnsupported, "a beam search has at most %u end tokens",
                             kMaxBeamStopIds);
    }
    options->stop_ids[options->n_stop_ids++] = id;
    return Status::kOk;
  };
  for (uint32_t eos : core_.model.eos_ids) ARN_TRY(add(static_cast<int32_t>(eos)));
  for (int32_t eos : request.extra_eos_ids) ARN_TRY(add(eos));
  return Status::kOk;
}

const float* BeamDriver::Process(const Processing& processing, uint32_t sequence) {
  ProcessorInput input = processing.input;
  input.ids = sequences_.PlainIds(sequence);
  input.n_generated += beams_.n_steps();
  input.is_last = beams_.n_steps() + 1 == processing.max_tokens;
  const float* logits = sequences_.LogitsOf(sequence);
  const auto log_sum = static_cast<float>(LogSumExp(logits, core_.plan.program.vocab));
  return chooser_.processors().Apply(*processing.options, input, logits, log_sum);
}

Status BeamDriver::Steps(uint32_t num_beams, const Processing& processing, BeamResult* out) {
  const uint32_t selected = sequences_.selected();
  auto* sequences = core_.memory.As<uint32_t>(core_.plan.beam_sequences);
  auto* logits = core_.memory.As<const float*>(core_.plan.beam_logits);
  // The first beam of every group is the prompt itself.
  uint32_t n = beams_.n_running();
  const bool is_constrained = constrainer_.Has(selected);
  const float* first =
      processing.is_on ? Process(processing, selected) : sequences_.LogitsOf(selected);
  if (is_constrained) ARN_TRY(constrainer_.ReadAndMask(selected, first, &first));
  for (uint32_t i = 0; i < n; ++i) logits[i] = first;
  for (bool is_first = true;; is_first = false) {
    beams_.Step({logits, n}, processing.is_on);
    out->n_steps = beams_.n_steps();
    n = beams_.n_running();
    if (n == 0) return Status::kOk;
    for (uint32_t i = 0; i < n; ++i) {
      sequences[i] = is_first ? selected : beams_.parents()[i];
    }
    ARN_TRY(sequences_.Reorder({sequences, n}));
    constrainer_.Reorder({sequences, n});
    // Free the pages of dropped beams before the run reserves new ones.
    sequences_.Clear(n, num_beams);
    for (uint32_t i = 0; i < n; ++i) {
      sequences[i] = i;
      logits[i] = sequences_.LogitsOf(i);
    }
    ARN_TRY(decoder_.StepBatch({sequences, n}, beams_.ids()));
    ARN_TRY(chooser_.Fetch());
    out->kv_peak_bytes = Max(out->kv_peak_bytes, sequences_.KvUsedBytes());
    for (uint32_t i = 0; i < n; ++i) {
      // The beam's logits are read once, so they may be changed in place.
      float* own = sequences_.LogitsOf(i);
      if (processing.is_on) {
        std::memcpy(own, Process(processing, i), core_.plan.program.vocab * sizeof(float));
      }
      if (is_constrained) ARN_TRY(constrainer_.ReadAndMaskInPlace(i, own));
    }
  }
}

Status BeamDriver::Search(const BeamRequest& request, BeamResult* out) {
  const uint32_t selected = sequences_.selected();
  *out = BeamResult();
  beams_.Forget();
  ARN_TRY(chooser_.Need(selected));
  BeamOptions options = request.options;
  // The last token of a sequence does not run.
  const uint32_t room = cache().capacity() - sequences_.length() + 1;
  if (options.max_tokens == 0) options.max_tokens = Min(room, core_.plan.beams.max_tokens);
  ARN_TRY(CollectStopIds(request, &options));
  if (options.max_tokens > room) {
    return core_.diag.Fail(Status::kContextFull,
                           "beams of %u tokens after %u do not fit a context of %u",
                           options.max_tokens, sequences_.length(), cache().capacity());
  }
  ARN_TRY(CheckBeams(options, core_.plan.beams, &core_.diag));
  for (uint32_t s = 0; s < options.num_beams; ++s) {
    if (s != selected && sequences_.Length(s) != 0) {
      return core_.diag.Fail(Status::kBadState,
                             "sequence %u has %u tokens, %u beams need sequences 0 to %u empty", s,
                             sequences_.Length(s), options.num_beams, options.num_beams - 1);
    }
  }
  ARN_TRY(chooser_.Fetch());
  out->kv_peak_bytes = sequences_.KvUsedBytes();
  beams_.Start(options);
  if (constrainer_.Has(selected)) {
    constrainer_.SetEnds(selected, request.extra_eos_ids, !request.ignore_eos);
  }
  const ConstraintUse constraint = constrainer_.UseOf(selected);
  const Sequence& sequence = sequences_.At(selected);
  Processing processing;
  processing.is_on = sequence.sampler.has_processors();
  processing.options = &sequence.sampler.options();
  processing.input.n_generated = sequence.n_generated;
  processing.input.eos_ids = core_.model.eos_ids;
  processing.input.extra_eos_ids = request.extra_eos_ids;
  processing.max_tokens = options.max_tokens;
  Status status;
  {
    const Sequences::SharedAdapters shared(&sequences_);
    status = Steps(options.num_beams, processing, out);
  }
  sequences_.Clear(0, options.num_beams);
  constrainer_.EndBeams(options.num_beams, selected, constraint);
  if (status != Status::kOk) beams_.Forget();
  out->n_sequences = beams_.n_results();
  return status;
}

Status BeamDriver::Read(uint32_t index, Span<int32_t> out_ids, size_t* out_count,
                        float* out_score) const {
  *out_count = 0;
  if (index >= beams_.n_results()) {
    return core_.diag.Fail(Status::kBadArgument, "sequence %u, the beam search has %u", index,
                           beams_.n_results());
  }
  *out_count = beams_.length(index);
  *out_score = beams_.score(index);
  if (out_ids.size() < *out_count) return Status::kBufferTooSmall;
  beams_.CopyIds(index, out_ids.data());
  return Status::kOk;
}

}  // namespace arn
