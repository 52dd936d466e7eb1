// Scheduler: what a step runs and chooses.
#include "platform/base/arith.h"
#include "platform/os/clock.h"
#include "runtime/session/generator.h"
#include "runtime/session/scheduler.h"
#include "runtime/session/scheduler_selecting.h"
#include "runtime/session/timer.h"

namespace arn {
namespace {

// Work of a constraint in a step: a millisecond or two.
constexpr uint64_t kConstraintWork = 4096;

// True if a failure is the session's or the device's rather than one request's.
bool EndsStep(Status status) {
  return status == Status::kCancelled || status == Status::kDevice ||
         status == Status::kDeviceLost || status == Status::kOutOfMemory ||
         status == Status::kInternal;
}

}  // namespace

Status Scheduler::Step(StepCounts* out) {
  *out = StepCounts();
  if (events_.size() != 0) {
    return core_.diag.Fail(Status::kBadState, "%u events have not been taken", events_.size());
  }
  if (core_.cancel.exchange(0, std::memory_order_relaxed) != 0) {
    return core_.diag.Fail(Status::kCancelled, "the step was cancelled");
  }
  const Selecting selecting(&sequences_);
  n_shown_ = 0;
  ++step_;
  Admit();
  session_.constrainer.LimitWork(kConstraintWork);
  Status status = RunOneAlone(out);
  if (status == Status::kOk) status = RunTogether(out);
  if (status == Status::kOk) status = ChooseAll(out);
  session_.constrainer.LimitWork(TokenConstraint::kAnyWork);
  // Failures of requests are in their events, and what was tried again went well.
  if (status == Status::kOk) core_.diag.Clear();
  out->n_running = n_running();
  out->n_waiting = n_waiting();
  return status;
}

Status Scheduler::RunOneAlone(StepCounts* out) {
  RequestRecord* next = nullptr;
  for (uint32_t i = 0; i < table_.size(); ++i) {
    RequestRecord& record = table_.At(i);
    if (record.phase != RequestPhase::kPrompt || record.is_paused || !record.runs_alone()) continue;
    if (next == nullptr || record.since < next->since) next = &record;
  }
  if (next == nullptr) return Status::kOk;
  next->since = step_;
  sequences_.Select(next->sequence);
  // Ids of embeddings are the session's from one call to the next only.
  KeptPrefix prefix;
  Status status = KeepPrefix(session_, next->request.prompt, next->request.embeddings, &prefix);
  const size_t mark = next->mark < prefix.n_kept ? Prefiller::kNoMark : next->mark - prefix.n_kept;
  size_t n = 0;
  if (status == Status::kOk && !prefix.rest.empty()) {
    do {
      status = session_.prefiller.PrefillFirstChunk(prefix.rest, mark, &n);
    } while (status == Status::kContextFull && leases_.DropOldest());
  }
  if (EndsStep(status)) return status;
  if (status != Status::kOk) {
    End(next, 0, status);
    return Status::kOk;
  }
  out->n_rows += static_cast<uint32_t>(n);
  out->n_prompt_rows += static_cast<uint32_t>(n);
  if (n == prefix.rest.size()) next->phase = RequestPhase::kReply;
  return Status::kOk;
}

// Returns the rows of its prompt that a request may run in one run.
Status Scheduler::FindRows(const RequestRecord& record, uint32_t* out) {
  const uint32_t s = record.sequence;
  const uint32_t length = sequences_.Length(s);
  Runner& runner = session_.runner;
  if (length == record.mark && sequences_.At(s).n_pending == 0) {
    session_.cache().KeepSnapshot(s, true);
  }
  ARN_TRY(runner.RunPending(s, 1));
  uint32_t n = Min(record.n_prompt() - length, runner.RunTokens(s) - sequences_.At(s).n_pending);
  if (length < record.mark && session_.cache().snapshots().is_on()) {
    n = Min(n, record.mark - length);
  }
  if (length < record.border) n = Min(n, record.border - length);
  *out = n;
  return Status::kOk;
}

Status Scheduler::CollectWishes(uint32_t* out_n) {
  *out_n = 0;
  for (uint32_t i = 0; i < table_.size(); ++i) {
    RequestRecord& record = table_.At(i);
    if (record.is_paused) continue;
    uint32_t most = 0;
    if (record.phase == RequestPhase::kPrompt && !record.runs_alone()) {
      Status status = FindRows(record, &most);
      while (status == Status::kContextFull && leases_.DropOldest()) {
        status = FindRows(record, &most);
      }
      if (status == Status::kContextFull) {
        End(&record, 0, status);
        continue;
      }
      ARN_TRY(status);
    } else if (record.phase == RequestPhase::kReply && !record.chosen.empty()) {
      most = MostRows(record);
    } else {
      continue;
    }
    wishes_[(*out_n)++] = {record.id, record.since, most, 0};
  }
  return Status::kOk;
}

// Returns the rows of a reply's tokens that one run may take, so that it leaves what running them
// one by one would: no page is quantised in between, no snapshot missed.
uint32_t Scheduler::MostRows(const RequestRecord& record) const {
  const uint32_t s = record.sequence;
  const uint32_t pending = sequences_.At(s).n_pending;
  const uint32_t rows =
      Min(session_.runner.RunTokens(s), session_.cache().TokensBeforeQuantising(s));
  const auto known = static_cast<uint32_t>(record.chosen.size());
  return rows <= pending ? 1 : Min(known, rows - pending);
}

SessionPart Scheduler::PartOf(const RequestRecord& record, uint32_t rows) const {
  if (record.phase == RequestPhase::kReply) {
    return {record.sequence, record.chosen.subspan(0, rows)};
  }
  return {record.sequence, record.request.prompt.subspan(sequences_.Length(record.sequence), rows)};
}

Status Scheduler::RunParts(Span<const SessionPart> parts, bool needs_logits) {
  const LogitRows rows = needs_logits ? LogitRows::kLastOfEach : LogitRows::kNone;
  Status status = session_.runner.Run(parts, rows);
  while (status == Status::kContextFull && leases_.DropOldest()) {
    status = session_.runner.Run(parts, rows);
  }
  return status;
}

// Rows that run again behind a wrong guess. A prompt's are those of a rewind: they are not counted
// (CollectWishes has run most of them).
uint32_t Scheduler::PendingRows() const {
  uint32_t n = 0;
  for (uint32_t i = 0; i < table_.size(); ++i) {
    const RequestRecord& record = table_.At(i);
    const bool runs = record.phase == RequestPhase::kReply && !record.is_paused;
    if (runs && !record.chosen.empty()) n += sequences_.At(record.sequence).n_pending;
  }
  return n;
}

Status Scheduler::RunTogether(StepCounts* out) {
  uint32_t n_wishes = 0;
  ARN_TRY(CollectWishes(&n_wishes));
  const Span<RowWish> wishes = wishes_.subspan(0, n_wishes);
  const uint32_t n_pending = PendingRows();
  ShareRows(Max(1u, step_rows_ - Min(step_rows_, n_pending)), wishes);
  auto* parts = core_.memory.As<SessionPart>(core_.plan.parts);
  size_t n_parts = 0;
  uint32_t n_rows = 0, n_of_replies = 0, n_again = 0;
  bool needs_logits = false;
  RequestRecord* youngest = nullptr;
  for (const RowWish& wish : wishes) {
    if (wish.rows == 0) continue;
    RequestRecord& record = *table_.Find(wish.request);
    parts[n_parts++] = PartOf(record, wish.rows);
    n_rows += wish.rows;
    youngest = &record;
    const bool is_reply = record.phase == RequestPhase::kReply;
    n_of_replies += is_reply ? wish.rows : 0;
    n_again += is_reply ? sequences_.At(record.sequence).n_pending : 0;
    needs_logits |= is_reply || sequences_.Length(record.sequence) + wish.rows == record.n_prompt();
  }
  if (n_parts == 0) return Status::kOk;
  const Span<SessionPart> run(parts, n_parts);
  const uint32_t n_plain = n_rows + n_again;
  uint32_t n_guesses = 0;
  if (speculator_.CanGuess() && n_plain < step_rows_) {
    const SharedGuessPolicy::Plain plain{n_plain, n_again, static_cast<uint32_t>(n_parts),
                                         sequences_.HasState()};
    n_guesses = AddGuesses(run, plain, step_rows_ - n_plain);
  }
  const uint64_t start = MonotonicNs();
  // Guesses take free pages only.
  Status status =
      n_guesses == 0 ? Status::kContextFull : session_.runner.Run(run, LogitRows::kLastOfEach);
  if (status != Status::kOk) {
    DropGuesses(run);
    n_guesses = 0;
    if (status == Status::kContextFull) status = RunParts(run, needs_logits);
  }
  if (status == Status::kContextFull) {
    // Pages are reserved, so this is about groups of layers that need more than their share.
    End(youngest, 0, status);
    return Status::kOk;
  }
  ARN_TRY(status);
  const uint64_t ns = MonotonicNs() - start;
  core_.stats.decode_ns += ns * n_of_replies / n_rows;
  core_.stats.prefill_ns += ns - ns * n_of_replies / n_rows;
  const uint32_t n_all = n_plain + n_guesses;
  if (n_of_replies == n_rows) speculator_.AddTime(n_parts, n_all, n_guesses, ns);
  if (n_guesses != 0) {
    StartGuesses(run);
    guesses_.proposed += n_guesses;
    guesses_.rows += n_all;
    ++guesses_.steps;
  }
  for (const RowWish& wish : wishes) {
    if (wish.rows != 0) Advance(table_.Find(wish.request), wish.rows);
  }
  out->n_rows += n_all;
  out->n_prompt_rows += n_rows - n_of_replies;
  out->n_guess_rows += n_guesses;
  return Status::kOk;
}

void Scheduler::Advance(RequestRecord* record, uint32_t rows) {
  Sequence& sequence = sequences_.At(record->sequence);
  record->since = step_;
  if (record->phase == RequestPhase::kReply) {
    record->chosen = record->chosen.subspan(rows, record->chosen.size() - rows);
    sequence.n_generated += rows;
    core_.stats.decode_tokens += rows;
    return;
  }
  const uint32_t length = sequences_.Length(record->sequence);
  const uint32_t before = length - rows;
  if (record->mark != RequestRecord::kNoMark && before < record->mark) {
    core_.stats.recomputed_tokens += Min(length, record->mark) - before;
  }
  sequence.n_generated = 0;
  core_.stats.prefill_tokens += rows;
  if (length == record->n_prompt()) record->phase = RequestPhase::kReply;
}

void Scheduler::SettleAll() {
  for (uint32_t s = 0; s < sequences_.size(); ++s) speculator_.Settle(s);
  speculator_.EndShared();
}

Status Scheduler::ChooseAll(StepCounts* out) {
  const Timer timer(&core_.stats.decode_ns);
  Status status = Status::kOk;
  for (uint32_t i = 0; i < table_.size(); ++i) {
    RequestRecord& record = table_.At(i);
    const bool is_next =
        record.phase == RequestPhase::kReply && record.chosen.empty() && !record.is_paused;
    if (!is_next) continue;
    const uint64_t n_before = record.n_accepted;
    status = ChooseTokens(&record);
    guesses_.accepted += record.n_accepted - n_before;
    // Logits may have to be computed again, or fetched from a device.
    const bool is_of_device = status == Status::kDevice || status == Status::kDeviceLost;
    if (status == Status::kCancelled || is_of_device) break;
    // It goes on with it in the next step; the others do not wait.
    if (status != Status::kOk && session_.constrainer.IsPutOff(record.sequence)) {
      status = Status::kOk;
      ++out->n_put_off;
      continue;
    }
    if (status != Status::kOk) End(&record, 0, status);
    out->n_chosen += status == Status::kOk ? 1 : 0;
    status = Status::kOk;
  }
  SettleAll();
  return status;
}

Status Scheduler::ChooseTokens(RequestRecord* record) {
  const uint32_t s = record->sequence;
  record->n_put = 0;
  for (;;) {
    ARN_TRY(ChooseNext(record));
    if (record->phase != RequestPhase::kReply) return Status::kOk;
    const uint32_t n = speculator_.TakeRun(s, record->chosen);
    if (n == 0) break;
    record->n_accepted += n;
    record->chosen = record->chosen.subspan(n, record->chosen.size() - n);
  }
  speculator_.Settle(s);
  PutCertain(record);
  return Status::kOk;
}

bool Scheduler::IsStopId(const Request& request, int32_t id) const {
  if (request.ignore_eos) return false;
  for (const uint32_t eos : core_.model.eos_ids) {
    if (static_cast<uint32_t>(id) == eos) return true;
  }
  for (const int32_t eos : request.extra_eos_ids) {
    if (id == eos) return true;
  }
  return false;
}

Status Scheduler::ChooseNext(RequestRecord* record) {
  const uint32_t s = record->sequence;
  const Request& request = record->request;
  Constrainer& constrainer = session_.constrainer;
  // A constraint that begins now begins behind forced tokens.
  if (const Span<const int32_t> forced = record->forced; !forced.empty()) {
    ARN_TRY(session_.chooser.Need(s));
    const size_t n = PutTokens(record, forced);
    record->forced = forced.subspan(n, forced.size() - n);
    return Status::kOk;
  }
  if (constrainer.Has(s)) {
    ARN_TRY(constrainer.Read(s));
    if (constrainer.MustEnd(s)) {
      ARN_TRY(constrainer.CheckFailure(s));
      EndText(record);
      return Status::kOk;
    }
  }
  ARN_TRY(session_.chooser.Need(s));
  const bool is_last = request.max_tokens != 0 && record->n_tokens + 1 == request.max_tokens;
  int32_t id = 0;
  const Status chosen = session_.chooser.Choose(s, {request.extra_eos_ids, is_last}, &id);
  if (chosen != Status::kOk && constrainer.IsPutOff(s)) session_.chooser.Unchoose(s);
  ARN_TRY(chosen);
  if (IsStopId(request, id)) {
    EndText(record);
  } else {
    PutToken(record, id);
  }
  return Status::kOk;
}

void Scheduler::EndText(RequestRecord* record) {
  StringView rest;
  const bool has_stopped = TextOf(*record).End(&rest);
  End(record, static_cast<uint32_t>(has_stopped ? Finish::kStop : Finish::kEos), Status::kOk, rest);
}

uint32_t Scheduler::MostTokens(const RequestRecord& record) const {
  const uint32_t most = record.request.one_by_one ? 1 : core_.plan.scheduler.step_tokens;
  return most - Min(most, record.n_put);
}

size_t Scheduler::PutTokens(RequestRecord* record, Span<const int32_t> ids) {
  size_t n = 0;
  while (n < ids.size() && record->phase == RequestPhase::kReply && MostTokens(*record) != 0) {
    PutToken(record, ids[n++]);
  }
  return n;
}

// Forced tokens come before what the constraint says.
void Scheduler::PutCertain(RequestRecord* record) {
  const uint32_t s = record->sequence;
  if (record->chosen.size() != 1 || !record->forced.empty() || !session_.constrainer.Has(s)) return;
  int32_t ids[TokenConstraint::kMaxForcedTokens];
  uint32_t n_certain = 0;
  const uint32_t most = Min(MostTokens(*record), TokenConstraint::kMaxForcedTokens);
  if (most == 0) return;
  session_.constrainer.Narrow(s, record->chosen[0], {ids, most}, 0, &n_certain);
  PutTokens(record, {ids, n_certain});
}

void Scheduler::PutToken(RequestRecord* record, int32_t id) {
  const uint32_t s = record->sequence;
  Finish finish = Finish::kNone;
  if (++record->n_tokens == record->request.max_tokens) {
    finish = Finish::kLength;
  } else if (sequences_.Length(s) + record->chosen.size() == core_.plan.options.context_tokens) {
    finish = Finish::kContext;
  }
  RequestEvent event;
  event.kind = RequestEventKind::kToken;
  event.id = id;
  ++record->n_put;
  ReplyText& text = TextOf(*record);
  const bool has_stopped =
      finish == Finish::kNone ? text.Add(id, &event.text) : text.AddLast(id, &event.text);
  if (has_stopped) finish = Finish::kStop;
  Put(*record, event);
  if (finish != Finish::kNone) return End(record, static_cast<uint32_t>(finish), Status::kOk);
  const Span<int32_t> buffer = ChosenBuffer(s);
  const size_t n = record->chosen.size();
  buffer[n] = id;
  record->chosen = buffer.subspan(0, n + 1);
}

}  // namespace arn
