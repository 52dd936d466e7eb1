#include "runtime/session/speculator.h"

#include <cstring>

#include "platform/base/arith.h"
#include "platform/os/clock.h"

namespace arn {

Status Speculator::Init(const SessionPlan& wanted, Diag* diag) {
  ngrams_.Init(core_.plan.ngrams, core_.memory);
  if (core_.plan.options.draft == nullptr) return Status::kOk;
  return DraftModel::Create(&core_, wanted, &draft_, diag);
}

Speculator::~Speculator() {
  if (draft_ != nullptr) draft_->~DraftModel();
}

// A device chooses several tokens a call by itself, and its rows are not the same bits for any
// number of them. A rate limit counts tokens, not rows.
void Speculator::Begin(uint32_t sequence, bool guesses) {
  sequence_ = sequence;
  is_on_ = guesses && core_.plan.options.max_guesses != 0 && !throttle_.is_on() &&
           executor_.backend().host_kv != nullptr && executor_.backend().device == nullptr;
  if (is_on_) ngrams_.Reset();
}

GuessPolicy::Situation Speculator::SituationOf(uint32_t sequence, uint32_t wanted) const {
  return {wanted, sequences_.At(sequence).n_pending, sequences_.HasState()};
}

uint32_t Speculator::MostGuesses(uint32_t sequence, uint32_t wanted) const {
  const KvCache& cache = sequences_.cache();
  if (!is_on_ || wanted == 0 || cache.length(sequence) == 0) return 0;
  const uint32_t room = cache.capacity() - sequences_.Length(sequence) - 1;
  // Dropping guesses must leave what running token by token leaves: no page is quantised meanwhile,
  // and no regular snapshot is kept.
  const SessionOptions& options = core_.plan.options;
  const uint32_t rows = Min(Min(cache.TokensBeforeQuantising(sequence), options.prefill_chunk),
                            Min(cache.TokensToSnapshot(sequence) - 1, 1 + options.max_guesses));
  const uint32_t others = sequences_.At(sequence).n_pending + 1;
  return rows <= others ? 0 : Min(Min(wanted, room), rows - others);
}

uint32_t Speculator::Ask(Drafter* drafter, Span<const int32_t> ids, uint32_t most, int32_t* out) {
  const Offer offer = drafter->Look(ids, most);
  const uint32_t n =
      core_.plan.options.guesses_always ? offer.n : policy_.Choose(offer, situation_);
  if (n == 0) return 0;
  const Proposal proposal = drafter->Propose(ids, {out, n});
  policy_.AddDraft(proposal);
  core_.stats.draft_ns += proposal.reading_ns + proposal.guesses_ns;
  kind_ = offer.kind;
  return proposal.n;
}

uint32_t Speculator::Guess(uint32_t sequence, int32_t id, uint32_t most, int32_t* out,
                           bool* certain) {
  // The chosen token joins the sequence when it runs: its place in the history is free.
  const uint32_t length = sequences_.Length(sequence);
  int32_t* history = sequences_.History(sequence);
  history[length] = id;
  const Span<const int32_t> ids(history, length + 1);
  const bool has_ngrams = core_.plan.ngrams.n_slots != 0;
  uint32_t n = has_ngrams ? Ask(&ngrams_, ids, most, out) : 0;
  if (n == 0 && draft_ != nullptr) n = Ask(draft_, ids, most, out);
  *certain = false;
  if (!constrainer_.Has(sequence)) return n;
  uint32_t n_certain = 0;
  n = constrainer_.Narrow(sequence, id, {out, most}, n, &n_certain);
  *certain = n == n_certain;
  return n;
}

Status Speculator::RunChosen(uint32_t sequence, int32_t id, uint32_t wanted) {
  if (IsNext(sequence, id)) {
    const Status status = runner_.HeedCancel(sequence);
    if (status != Status::kOk) {
      chooser_.Unchoose(sequence);
      return status;
    }
    TakeNext(sequence);
    return Status::kOk;
  }
  Settle();
  if (!is_on_ || sequences_.IsAtLast(sequence)) return decoder_.RunChosen(sequence, id);
  int32_t ids[1 + kMaxGuesses];
  ids[0] = id;
  situation_ = SituationOf(sequence, wanted);
  const uint32_t pending = situation_.pending;
  const uint32_t most = MostGuesses(sequence, wanted);
  bool is_certain = false;
  uint32_t n = most == 0 ? 0 : Guess(sequence, id, most, ids + 1, &is_certain);
  if (n != 0) {
    const Growth growth{sequence, pending + 1 + n};
    const Status reserved = cache().Reserve({&growth, 1});
    if (reserved == Status::kContextFull)
      n = 0;  // too few pages are free
    else
      ARN_TRY(reserved);
  }
  const uint64_t start = MonotonicNs();
  const Status status =
      n == 0 ? decoder_.RunChosen(sequence, id) : RunAhead(sequence, {ids, 1 + size_t{n}});
  ARN_TRY(status);
  if (pending + n <= kMaxGuesses) policy_.AddTime(pending + 1 + n, MonotonicNs() - start);
  if (n == 0) return status;
  is_ahead_ = true;
  is_certain_ = is_certain;
  n_proposed_ = n;
  n_accepted_ = 0;
  core_.stats.guesses_proposed += n;
  ++core_.stats.guess_runs;
  return status;
}

Status Speculator::RunAhead(uint32_t sequence, Span<const int32_t> ids) {
  const SessionPart part{sequence, ids};
  cache().HoldStates(sequence);
  const Status status = runner_.Run({&part, 1}, LogitRows::kAll);
  if (status != Status::kOk) {
    cache().DropHeld();
    chooser_.Unchoose(sequence);
    return status;
  }
  n_ahead_ = static_cast<uint32_t>(ids.size()) - 1;
  cache().Uncommit(sequence, n_ahead_);
  ++sequences_.At(sequence).n_generated;
  ++core_.stats.decode_tokens;
  UseLogits(sequence, situation_.pending);
  return Status::kOk;
}

bool Speculator::IsNext(uint32_t sequence, int32_t id) const {
  return n_ahead_ != 0 && sequences_.History(sequence)[sequences_.Length(sequence)] == id;
}

void Speculator::TakeNext(uint32_t sequence) {
  const Growth growth{sequence, 1};
  // Keeps what a return to the states before the run needs, until the next one.
  if (!situation_.has_state) cache().ReleaseUnseen(sequence);
  cache().Commit({&growth, 1});
  --n_ahead_;
  ++sequences_.At(sequence).n_generated;
  ++core_.stats.decode_tokens;
  ++core_.stats.guesses_accepted;
  ++n_accepted_;
  UseLogits(sequence, situation_.pending + n_accepted_);
}

uint32_t Speculator::TakeRun(uint32_t sequence, Span<const int32_t> ids) {
  uint32_t n = 0;
  for (; n < ids.size() && IsNext(sequence, ids[n]); ++n) TakeNext(sequence);
  return n;
}

void Speculator::UseLogits(uint32_t sequence, uint32_t row) {
  const uint64_t vocab = core_.plan.program.vocab;
  if (sequences_.size() > 1) {
    std::memcpy(sequences_.LogitsOf(sequence),
                core_.memory.As<float>(core_.plan.program.logits) + row * vocab,
                vocab * sizeof(float));
  } else {
    sequences_.logits().UseRow(row);
  }
  sequences_.logits().Add(sequence);
  sequences_.At(sequence).state_before = sequences_.At(sequence).sampler.state();
}

void Speculator::Settle() {
  if (!is_ahead_) return;
  is_ahead_ = false;
  if (!is_certain_) policy_.AddOutcome(kind_, n_proposed_, n_accepted_, situation_);
  const uint32_t length = sequences_.Length(sequence_);
  if (n_ahead_ != 0 && situation_.has_state) {
    cache().ReturnToHeld();
    sequences_.At(sequence_).n_pending = length - cache().length(sequence_);
    sequences_.logits().Drop(sequence_);  // as after any rewind: those of the last row run again
  } else {
    cache().DropHeld();
    cache().Cut(sequence_, length);  // releases what the others had reserved
  }
  n_ahead_ = 0;
}

}  // namespace arn
