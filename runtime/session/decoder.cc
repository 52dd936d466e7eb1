#include "runtime/session/decoder.h"

#include "platform/base/arith.h"
#include "runtime/session/timer.h"

namespace arn {

// Excludes the cases that need the host between tokens: an option that the device does not apply;
// constraints are on the host; several sequences keep their logits in host memory; no_cache re-runs
// the whole sequence; profile and observer cover one run each; pacing sleeps between tokens; a
// device counts positions on from that of the first step.
bool Decoder::CanChooseOnDevice() const {
  return executor_.backend().tokens != nullptr && sequences_.logits().IsOnBackend() &&
         sequences_.size() == 1 && sequences_.At(0).sampler.runs_on_device() &&
         !core_.plan.options.no_cache && !executor_.is_observed() && !throttle_.is_on() &&
         !constrainer_.Has(sequences_.selected()) &&
         !sequences_.HasAxisPositions(sequences_.selected());
}

void Decoder::CommitStep(StepsOnDevice* steps) {
  const uint32_t selected = sequences_.selected();
  cache().ReleaseUnseen(selected);
  const SequenceRows rows = {0, 1, sequences_.length(), cache().tables(selected),
                             cache().encoder_rows(selected)};
  RunArgs args;
  args.tokens = {&steps->last_id, 1};
  args.sequences = {&rows, 1};
  executor_.CountStep(args);
  throttle_.SampleEnergy();
  const Growth growth{selected, 1};
  cache().Commit(Span<const Growth>(&growth, 1));
  sequences_.Remember({selected, {&steps->last_id, 1}});
  ++sequences_.At(selected).n_generated;
  ++core_.stats.decode_tokens;
  ++steps->n_run;
}

Status Decoder::RunOnDevice(StepsOnDevice* steps) {
  const uint32_t selected = sequences_.selected();
  steps->is_taken = false;
  if (!CanChooseOnDevice() || steps->stop_ids.size() > DecodeArgs::kMaxStopIds) return Status::kOk;
  // Reserving several steps at once must equal reserving token by token: no page may be quantised
  // and no context may shift in between. Of states only the last are kept.
  const uint32_t reservable = sequences_.HasState() ? 1 : cache().TokensBeforeQuantising(selected);
  const uint32_t fitting = Min(cache().capacity() - sequences_.length(), reservable);
  Growth growth{selected, Min(Min(steps->wanted, fitting),
                              Min(DecodeArgs::kMaxSteps, core_.plan.program.max_rows))};
  const Span<const Growth> grown(&growth, 1);
  Status status = cache().Reserve(grown);
  if (status == Status::kContextFull && growth.n_tokens > 1) {
    growth.n_tokens = 1;
    status = cache().Reserve(grown);
  }
  // If not even one token fits, the host path reports it after it has shown the token.
  if (status == Status::kContextFull) return Status::kOk;
  ARN_TRY(status);

  struct TokenObserver {
    Decoder* decoder;
    StepsOnDevice* steps;
    uint32_t n_tokens;
  } observer = {this, steps, 0};
  uint32_t rng[DecodeArgs::kMaxSteps];
  Sequence& sequence = sequences_.At(selected);
  const SamplingOptions& sampling = sequence.sampler.options();
  DecodeArgs args;
  args.edits = cache().edits();
  args.sequence = {0, 1, sequences_.length(), cache().tables(selected),
                   cache().encoder_rows(selected)};
  args.n_steps = growth.n_tokens;
  args.rule = {sampling.temperature, sampling.top_k, sampling.top_p, sampling.min_p};
  sequence.sampler.PeekDraws({rng, growth.n_tokens});
  args.rng = {rng, growth.n_tokens};
  args.stop_ids = steps->stop_ids;
  args.cancel = &core_.cancel;
  args.user = &observer;
  // A token is in the sequence once the next one has been chosen, because only then has it run.
  args.on_token = [](void* user, int32_t id) {
    auto& s = *static_cast<TokenObserver*>(user);
    if (s.n_tokens++ != 0) s.decoder->CommitStep(s.steps);
    s.steps->last_id = id;
    s.decoder->logits().EndStep();
    return s.steps->on_token == nullptr || s.steps->on_token(s.steps->user, id);
  };
  DecodeResult result;
  logits().BeginSteps();
  status = executor_.Decode(args, &result);
  logits().EndSteps();
  steps->is_taken = true;
  steps->ended = result.ended;
  cache().ClearEdits();
  if (status == Status::kOk && result.n_tokens != 0) {
    CommitStep(steps);
    logits().EndStep();
  }
  cache().Cut(selected,
              sequences_.length());  // releases what unused steps had reserved
  const uint32_t n_ended = result.ended ? 1 : 0;
  if (status == Status::kOk) {
    sequence.sampler.SkipDraws(result.n_tokens + n_ended);
    return status;
  }

  // The last token returned has not run: the logits are the ones it was chosen from, and its random
  // number is not consumed.
  if (result.n_tokens != 0) sequence.sampler.SkipDraws(result.n_tokens - 1);
  if (status == Status::kCancelled) {
    core_.ClearCancel();
    return runner_.RunError(status, selected);
  }
  if (!executor_.CanFallBack(status)) {
    logits().Drop(selected);
    return status;
  }
  ARN_TRY(recompute_.FallBack(status));
  if (result.n_tokens == 0) {
    sequence.sampler.SkipDraws(n_ended);
    steps->is_taken = result.ended;
    return Status::kOk;
  }
  ARN_TRY(RunOne(selected, steps->last_id));
  sequence.sampler.SkipDraws(1 + n_ended);
  ++steps->n_run;
  return Status::kOk;
}

Status Decoder::RunOne(uint32_t sequence, int32_t id) {
  const SessionPart part{sequence, Span<const int32_t>(&id, 1)};
  ARN_TRY(runner_.Run(Span<const SessionPart>(&part, 1), LogitRows::kLastOfEach));
  ++sequences_.At(sequence).n_generated;
  ++core_.stats.decode_tokens;
  return Status::kOk;
}

Status Decoder::RunForced(uint32_t sequence, Span<const int32_t> ids) {
  const SessionPart part{sequence, ids};
  ARN_TRY(runner_.Run(Span<const SessionPart>(&part, 1), LogitRows::kLastOfEach));
  sequences_.At(sequence).n_generated += static_cast<uint32_t>(ids.size());
  core_.stats.decode_tokens += ids.size();
  return Status::kOk;
}

Status Decoder::RunChosen(uint32_t sequence, int32_t id) {
  Status status = Status::kOk;
  if (sequences_.IsAtLast(sequence)) {
    status = runner_.HeedCancel(sequence);
    if (status == Status::kOk) {
      logits().Drop(sequence);
      ++core_.stats.decode_tokens;
    }
  } else {
    status = RunOne(sequence, id);
  }
  if (status != Status::kOk) chooser_.Unchoose(sequence);
  return status;
}

Status Decoder::Decode(int32_t* out_id) {
  const uint32_t selected = sequences_.selected();
  Timer timer(&core_.stats.decode_ns);
  ARN_TRY(chooser_.Need(selected));
  StepsOnDevice steps;
  if (!sequences_.IsAtLast(selected)) {
    ARN_TRY(runner_.MakeRoomForOne(selected));
    ARN_TRY(RunOnDevice(&steps));
  }
  int32_t id = steps.last_id;
  if (!steps.is_taken) {
    ARN_TRY(chooser_.Choose(selected, &id));
    ARN_TRY(RunChosen(selected, id));
  }
  *out_id = id;
  return Status::kOk;
}

Status Decoder::StepBatch(Span<const uint32_t> sequences, Span<const int32_t> ids) {
  ARN_TRY(sequences_.CheckSequences(sequences));
  ARN_TRY(sequences_.CheckIds(ids));
  for (uint32_t sequence : sequences) ARN_TRY(sequences_.CheckEncoderOutput(sequence));
  Timer timer(&core_.stats.decode_ns);
  for (uint32_t sequence : sequences) ARN_TRY(runner_.MakeRoomForOne(sequence));
  const Span<SessionPart> parts(core_.memory.As<SessionPart>(core_.plan.parts), sequences.size());
  for (size_t i = 0; i < parts.size(); ++i) parts[i] = {sequences[i], ids.subspan(i, 1)};
  ARN_TRY(runner_.Run(Span<const SessionPart>(parts.data(), parts.size()), LogitRows::kLastOfEach));
  for (uint32_t sequence : sequences) ++sequences_.At(sequence).n_generated;
  core_.stats.decode_tokens += sequences.size();
  return Status::kOk;
}

Status Decoder::DecodeBatch(Span<const uint32_t> sequences, Span<int32_t> out_ids) {
  ARN_TRY(sequences_.CheckSequences(sequences));
  for (uint32_t sequence : sequences) ARN_TRY(chooser_.Need(sequence));
  Timer timer(&core_.stats.decode_ns);
  auto* parts = core_.memory.As<SessionPart>(core_.plan.parts);
  size_t n_parts = 0;
  Status status = runner_.HeedCancel(sequences[0]);
  for (size_t i = 0; i < sequences.size() && status == Status::kOk; ++i) {
    if (!sequences_.IsAtLast(sequences[i])) {
      status = runner_.MakeRoomForOne(sequences[i]);
      parts[n_parts++] = {sequences[i], {&out_ids[i], 1}};
    }
  }
  ARN_TRY(status);
  for (size_t i = 0; i < sequences.size(); ++i) {
    status = chooser_.Choose(sequences[i], &out_ids[i]);
    if (status == Status::kOk) continue;
    for (size_t j = 0; j < i; ++j) chooser_.Unchoose(sequences[j]);
    return status;
  }
  if (n_parts > 0) {
    status = runner_.Run(Span<const SessionPart>(parts, n_parts), LogitRows::kLastOfEach);
  }
  // With no_cache tokens run one by one; those that ran keep their random numbers.
  for (size_t i = 0; i < sequences.size() && status != Status::kOk; ++i) {
    chooser_.Unchoose(sequences[i]);
  }
  ARN_TRY(status);
  // Sequences without a part have reached their last token.
  size_t n_seen = 0;
  for (uint32_t sequence : sequences) {
    const bool has_run = n_seen < n_parts && parts[n_seen].sequence == sequence;
    if (has_run) {
      ++n_seen;
      ++sequences_.At(sequence).n_generated;
    }
    if (!has_run) logits().Drop(sequence);
  }
  core_.stats.decode_tokens += sequences.size();
  return Status::kOk;
}

}  // namespace arn
