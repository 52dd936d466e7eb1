#include "runtime/session/speculator.h"

#include <cstring>
#include <new>

#include "platform/base/arith.h"
#include "platform/os/clock.h"

namespace arn {

Status Speculator::Init(const SessionPlan& wanted, Diag* diag) {
  const SessionPlan& plan = core_.plan;
  if (plan.options.max_guesses == 0) return Status::kOk;
  guesses_ = {core_.memory.As<SequenceGuesses>(plan.guesses),
              static_cast<size_t>(plan.guesses.bytes / sizeof(SequenceGuesses))};
  for (uint32_t i = 0; i < guesses_.size(); ++i) {
    new (&guesses_[i]) SequenceGuesses();
    guesses_[i].ngrams.Init(plan.ngrams, core_.memory, i);
  }
  if (plan.mtp.exists()) {
    SessionPlan head;
    SessionObjects objects;
    objects.sequence_bytes = sizeof(Sequence);
    objects.mtp_bytes = Max(sizeof(MtpDrafter), sizeof(AssistantDrafter));
    ARN_TRY(PlanMtp(core_.model, wanted, objects, &head, diag));
    if (core_.model.mtp->spec.lender != nullptr) {
      ARN_TRY(AssistantDrafter::Create(&core_, &sequences_, head, &assistant_, diag));
      runner_.SetObserver(assistant_);
    } else {
      ARN_TRY(MtpDrafter::Create(&core_, head, &mtp_, diag));
      runner_.SetObserver(mtp_);
    }
  }
  if (plan.options.draft == nullptr) return Status::kOk;
  return DraftModel::Create(&core_, wanted, &draft_, diag);
}

Speculator::~Speculator() {
  if (draft_ != nullptr) draft_->~DraftModel();
  runner_.SetObserver(nullptr);
  if (mtp_ != nullptr) mtp_->~MtpDrafter();
  if (assistant_ != nullptr) assistant_->~AssistantDrafter();
}

// A device chooses several tokens a call by itself, and its rows are not the same bits for any
// number of them. A rate limit counts tokens, not rows.
bool Speculator::CanVerify() const {
  return !throttle_.is_on() && executor_.backend().host_kv != nullptr &&
         executor_.backend().device == nullptr;
}

void Speculator::Begin(uint32_t sequence, bool guesses) {
  sequence_ = sequence;
  is_on_ = guesses && core_.plan.options.max_guesses != 0 && CanVerify();
  if (is_on_) Of(sequence).ngrams.Reset();
}

GuessPolicy::Situation Speculator::SituationOf(uint32_t sequence, uint32_t wanted) const {
  return {wanted, sequences_.At(sequence).n_pending, sequences_.HasState()};
}

uint32_t Speculator::MostGuesses(uint32_t sequence, uint32_t known, uint32_t wanted) const {
  const KvCache& cache = sequences_.cache();
  const uint32_t length = sequences_.Length(sequence) + known;
  if (wanted == 0 || cache.length(sequence) == 0 || length >= cache.capacity()) return 0;
  const uint32_t room = cache.capacity() - length;
  // Dropping guesses must leave what running token by token leaves: no page is quantised meanwhile,
  // and no regular snapshot is kept.
  const SessionOptions& options = core_.plan.options;
  const uint32_t rows = Min(Min(cache.TokensBeforeQuantising(sequence), options.prefill_chunk),
                            Min(cache.TokensToSnapshot(sequence) - 1, 1 + options.max_guesses));
  const uint32_t others = sequences_.At(sequence).n_pending + known;
  return rows <= others ? 0 : Min(Min(wanted, room), rows - others);
}

uint32_t Speculator::Ask(Drafter* drafter, uint32_t sequence, Span<const int32_t> ids,
                         uint32_t most, int32_t* out) {
  SequenceGuesses& of = Of(sequence);
  const Offer offer = drafter->Look(ids, most);
  const uint32_t n =
      core_.plan.options.guesses_always ? offer.n : policy_.Choose(offer, of.situation);
  if (n == 0) return 0;
  const Proposal proposal = drafter->Propose(ids, {out, n});
  policy_.AddDraft(proposal);
  core_.stats.draft_ns += proposal.reading_ns + proposal.guesses_ns;
  of.kind = offer.kind;
  return proposal.n;
}

// Tokens join the sequence when they run: their places in the history are free.
Span<const int32_t> Speculator::WithKnown(uint32_t sequence, Span<const int32_t> known) {
  const uint32_t length = sequences_.Length(sequence);
  int32_t* history = sequences_.History(sequence);
  std::memcpy(history + length, known.data(), known.size() * sizeof(int32_t));
  return {history, length + known.size()};
}

uint32_t Speculator::Guess(uint32_t sequence, Span<const int32_t> known, uint32_t most,
                           int32_t* out, bool* certain) {
  *certain = false;
  if (IsTooFar(sequence, known)) return 0;
  const Span<const int32_t> ids = WithKnown(sequence, known);
  uint32_t n = HasNgrams() ? Ask(&Of(sequence).ngrams, sequence, ids, most, out) : 0;
  if (n == 0 && draft_ != nullptr) n = Ask(draft_, sequence, ids, most, out);
  if (n == 0 && mtp_ != nullptr) n = Ask(mtp_, sequence, ids, most, out);
  if (n == 0 && assistant_ != nullptr) n = Ask(assistant_, sequence, ids, most, out);
  if (!constrainer_.Has(sequence)) return n;
  uint32_t n_certain = 0;
  n = constrainer_.Narrow(sequence, known[0], {out, most}, n, &n_certain);
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
  SequenceGuesses& of = Of(sequence);
  int32_t ids[1 + kMaxGuesses];
  ids[0] = id;
  of.situation = SituationOf(sequence, wanted);
  const uint32_t pending = of.situation.pending;
  const uint32_t most = MostGuesses(sequence, 1, wanted);
  bool is_certain = false;
  uint32_t n = most == 0 ? 0 : Guess(sequence, {&id, 1}, most, ids + 1, &is_certain);
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
  Start(sequence, n, 0);
  of.is_certain = is_certain;
  of.is_shared = false;
  ++core_.stats.guess_runs;
  return status;
}

Status Speculator::RunAhead(uint32_t sequence, Span<const int32_t> ids) {
  SessionPart part{sequence, ids};
  part.n_guesses = static_cast<uint32_t>(ids.size()) - 1;
  cache().HoldStates(sequence);
  const Status status = runner_.Run({&part, 1}, LogitRows::kLastOfEach);
  if (status != Status::kOk) {
    cache().DropHeld(sequence);
    chooser_.Unchoose(sequence);
    return status;
  }
  ++sequences_.At(sequence).n_generated;
  ++core_.stats.decode_tokens;
  return Status::kOk;
}

void Speculator::Start(uint32_t sequence, uint32_t n, uint32_t row) {
  SequenceGuesses& of = Of(sequence);
  cache().Uncommit(sequence, n);
  of.is_ahead = true;
  of.n_proposed = of.n_ahead = n;
  of.n_accepted = 0;
  of.row = row;
  core_.stats.guesses_proposed += n;
}

bool Speculator::IsNext(uint32_t sequence, int32_t id) {
  return !guesses_.empty() && Of(sequence).n_ahead != 0 &&
         sequences_.History(sequence)[sequences_.Length(sequence)] == id;
}

void Speculator::TakeNext(uint32_t sequence) {
  SequenceGuesses& of = Of(sequence);
  const Growth growth{sequence, 1};
  // Keeps what a return to the states before the run needs, until the next one.
  if (!of.situation.has_state) cache().ReleaseUnseen(sequence);
  cache().Commit({&growth, 1});
  --of.n_ahead;
  ++sequences_.At(sequence).n_generated;
  ++core_.stats.decode_tokens;
  ++core_.stats.guesses_accepted;
  UseLogits(sequence, of.row + ++of.n_accepted);
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
  sequences_.AddLogits(sequence);
  sequences_.At(sequence).state_before = sequences_.At(sequence).sampler.state();
}

void Speculator::Settle(uint32_t sequence) {
  if (guesses_.empty() || !Of(sequence).is_ahead) return;
  SequenceGuesses& of = Of(sequence);
  of.is_ahead = false;
  const uint32_t length = sequences_.Length(sequence);
  uint32_t n_again = 0;
  if (of.n_ahead != 0 && of.situation.has_state) {
    cache().ReturnToHeld(sequence);
    n_again = length - cache().length(sequence);
    sequences_.At(sequence).n_pending = n_again;
    sequences_.logits().Drop(sequence);  // as after any rewind: those of the last row run again
  } else {
    cache().DropHeld(sequence);
    cache().Cut(sequence, length);  // releases what the others had reserved
  }
  of.n_ahead = 0;
  if (of.is_shared) {
    if (!of.is_certain) {
      of.odds.Add(of.kind, of.n_proposed, of.n_accepted);
      shared_odds_.Add(of.kind, of.n_proposed, of.n_accepted);
    }
    n_right_ += of.n_accepted;
    n_again_ += n_again;
  } else if (!of.is_certain) {
    policy_.AddOutcome(of.kind, of.n_proposed, of.n_accepted, of.situation);
  }
}

void Speculator::BeginText(uint32_t sequence) {
  if (!CanGuess()) return;
  Of(sequence).ngrams.Reset();
  Of(sequence).odds = GuessOdds();
}

uint32_t Speculator::ProposeAlone(uint32_t sequence, Span<const int32_t> known, uint32_t wanted,
                                  Span<int32_t> out) {
  SequenceGuesses& of = Of(sequence);
  const uint32_t most = Min(static_cast<uint32_t>(out.size()),
                            MostGuesses(sequence, static_cast<uint32_t>(known.size()), wanted));
  if (most == 0) return 0;
  of.situation = SituationOf(sequence, wanted);
  of.is_shared = false;
  const uint32_t n = Guess(sequence, known, most, out.data(), &of.is_certain);
  if (n != 0) cache().HoldStates(sequence);
  return n;
}

SharedGuessPolicy::Share Speculator::Look(uint32_t sequence, Span<const int32_t> known,
                                          uint32_t wanted) {
  SequenceGuesses& of = Of(sequence);
  SharedGuessPolicy::Share share;
  if (!HasNgrams() || IsTooFar(sequence, known)) return share;
  const uint32_t most = MostGuesses(sequence, static_cast<uint32_t>(known.size()), wanted);
  if (most == 0) return share;
  of.situation = SituationOf(sequence, wanted);
  of.offer = of.ngrams.Look(WithKnown(sequence, known), most);
  share.most = of.offer.n;
  of.odds.Forget(of.offer.kind);
  share.right = of.odds.Of(of.offer.kind, shared_odds_.Of(of.offer.kind));
  return share;
}

void Speculator::ShareOut(const SharedGuessPolicy::Plain& plain, uint32_t most, size_t first,
                          Span<SharedGuessPolicy::Share> shares) {
  plain_ = plain;
  n_shared_ = n_right_ = n_again_ = 0;
  if (!core_.plan.options.guesses_always) {
    shared_policy_.Choose(plain, most, first, shares);
    return;
  }
  for (bool has_more = true; has_more;) {
    has_more = false;
    for (size_t i = 0; i < shares.size() && most != 0; ++i) {
      SharedGuessPolicy::Share& share = shares[(first + i) % shares.size()];
      if (share.n == share.most) continue;
      ++share.n;
      --most;
      has_more = true;
    }
  }
}

uint32_t Speculator::Propose(uint32_t sequence, Span<const int32_t> known, Span<int32_t> out) {
  SequenceGuesses& of = Of(sequence);
  uint32_t n = of.ngrams.Propose(WithKnown(sequence, known), out).n, n_certain = 0;
  if (constrainer_.Has(sequence)) {
    n = constrainer_.Narrow(sequence, known[0], out, n, &n_certain);
  }
  if (n == 0) return 0;
  of.kind = of.offer.kind;
  of.is_certain = n == n_certain;
  of.is_shared = true;
  cache().HoldStates(sequence);
  return n;
}

void Speculator::StartAhead(uint32_t sequence, uint32_t n, uint32_t row) {
  Start(sequence, n, row);
  if (Of(sequence).is_shared) n_shared_ += n;
}

void Speculator::AddTime(size_t sequences, uint32_t rows, uint32_t guesses, uint64_t ns) {
  if (sequences == 1 && rows <= kMaxGuesses + 1) policy_.AddTime(rows, ns);
  // Leaves guesses of one sequence out of the shared account.
  if (sequences != 1 || guesses == 0) shared_policy_.AddTime(rows, guesses, ns);
}

void Speculator::EndShared() {
  if (n_shared_ != 0) shared_policy_.AddOutcome(plain_, n_shared_, n_right_, n_again_);
  n_shared_ = 0;
}

}  // namespace arn
