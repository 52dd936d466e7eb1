// Scheduler: requests and sequences.
#include <new>

#include "platform/base/arith.h"
#include "runtime/session/scheduler.h"

namespace arn {
namespace {

uint32_t CountCommonTokens(Span<const int32_t> a, Span<const int32_t> b) {
  const size_t n = Min(a.size(), b.size());
  size_t common = 0;
  while (common < n && a[common] == b[common]) ++common;
  return static_cast<uint32_t>(common);
}

bool HaveSameAdapters(const Request& a, const Request& b) {
  if (a.adapters.size() != b.adapters.size()) return false;
  for (size_t i = 0; i < a.adapters.size(); ++i) {
    const float of_a = a.adapter_scales == nullptr ? 1.0f : a.adapter_scales[i];
    const float of_b = b.adapter_scales == nullptr ? 1.0f : b.adapter_scales[i];
    if (a.adapters[i] != b.adapters[i] || of_a != of_b) return false;
  }
  return true;
}

}  // namespace

void Scheduler::WantPrefixes() {
  leases_.ForgetWanted();
  for (uint32_t i = 0; i < table_.size(); ++i) {
    const RequestRecord& record = table_.At(i);
    if (record.phase != RequestPhase::kWaiting) continue;
    if (!leases_.HasRoomFor(record.request)) return;  // none starts in this step
    uint32_t best = 0;
    const uint32_t held = leases_.LongestPrefix(record.request, &best);
    const bool is_wanted = held >= SequenceLeases::kLeastShared && !leases_.is_busy(best) &&
                           leases_.GoesOnFrom(best, held);
    if (is_wanted) leases_.Want(best);
  }
}

void Scheduler::Admit() {
  WantPrefixes();
  for (uint32_t i = 0; i < table_.size(); ++i) table_.At(i).border = 0;
  uint32_t n_apart = 0;  // that wait for a prefix
  for (uint32_t i = 0; i < table_.size(); ++i) {
    RequestRecord& record = table_.At(i);
    if (record.phase != RequestPhase::kWaiting) continue;
    // Lets those behind wait too, so that a request that needs much is not overtaken for ever.
    if (!leases_.HasRoomFor(record.request)) return;
    if (record.request.has_constraint && !session_.constrainer.HasFree()) return;
    uint32_t best = 0;
    const uint32_t held = leases_.LongestPrefix(record.request, &best);
    if (WaitsForPrefix(record, held)) {
      // There are no sequences for more of them.
      if (++n_apart == sequences_.size()) return;
      continue;
    }
    // The text of a failure takes memory that the sequence has for one in a step.
    if (!Begin(&record, best, held)) return;
  }
}

bool Scheduler::WaitsForPrefix(const RequestRecord& waiting, uint32_t held) {
  if (waiting.runs_alone()) return false;
  for (uint32_t i = 0; i < table_.size(); ++i) {
    RequestRecord& other = table_.At(i);
    if (other.phase != RequestPhase::kPrompt || other.is_paused || other.runs_alone()) continue;
    if (!HaveSameAdapters(other.request, waiting.request)) continue;
    const uint32_t common = CountCommonTokens(other.request.prompt, waiting.request.prompt);
    const uint32_t done = sequences_.Length(other.sequence);
    if (common < SequenceLeases::kLeastShared || common <= held || common <= done) continue;
    if (other.border == 0 || common < other.border) other.border = common;
    return true;
  }
  return false;
}

bool Scheduler::Begin(RequestRecord* record, uint32_t best, uint32_t common) {
  record->sequence = leases_.Take(record->request, best, common);
  record->phase = RequestPhase::kPrompt;
  record->since = step_ - 1;  // behind those that waited longer
  new (&TextOf(*record))
      ReplyText(core_.model.tokenizer, record->request.stops, TextBuffer(record->sequence));
  const Status status = PrepareSequence(record);
  if (status != Status::kOk) {
    End(record, 0, status);
    return false;
  }
  RequestEvent started;
  started.kind = RequestEventKind::kStarted;
  Put(*record, started);
  if (sequences_.Length(record->sequence) == record->n_prompt()) {
    record->phase = RequestPhase::kReply;
  }
  return true;
}

Status Scheduler::PrepareSequence(RequestRecord* record) {
  const Request& request = record->request;
  sequences_.Select(record->sequence);
  if (request.has_constraint) {
    ARN_TRY(SetConstraint(*record));
    // It was compiled to find its mistakes.
    if (request.constraint_waits) session_.constrainer.Drop(record->sequence);
  }
  if (record->compiled != nullptr) UseCompiled(*record);
  KeptPrefix prefix;
  Status status = Status::kOk;
  do {
    status = KeepPrefix(session_, request.prompt, request.embeddings, &prefix);
  } while (status == Status::kContextFull && leases_.DropOldest());
  ARN_TRY(status);
  record->n_kept = prefix.n_kept;
  if (!prefix.rest.empty()) record->mark = prefix.n_kept + prefix.n_again;
  speculator_.BeginText(record->sequence);
  sequences_.At(record->sequence).sampler.Configure(request.sampling);
  sequences_.At(record->sequence).n_generated = 0;
  return Status::kOk;
}

Status Scheduler::SetConstraint(const RequestRecord& record) {
  const Request& request = record.request;
  ARN_TRY(
      session_.constrainer.Set(record.sequence, request.constraint, Constrainer::kAtNextChoice));
  session_.constrainer.SetEnds(record.sequence, request.extra_eos_ids, !request.ignore_eos);
  return Status::kOk;
}

void Scheduler::UseCompiled(const RequestRecord& record) {
  session_.constrainer.Use(record.sequence, record.compiled);
  session_.constrainer.SetEnds(record.sequence, record.request.extra_eos_ids,
                               !record.request.ignore_eos);
}

}  // namespace arn
