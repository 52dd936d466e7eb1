#include "runtime/session/scheduler.h"

#include <cstring>

#include "platform/base/arith.h"
#include "runtime/session/generator.h"

namespace arn {

Status Scheduler::Open(const SchedulerOptions& options) {
  const SchedulerPlan& plan = core_.plan.scheduler;
  const uint32_t n = core_.plan.options.max_requests;
  if (n == 0) {
    return core_.diag.Fail(Status::kUnsupported, "the session was created with max_requests = 0");
  }
  if (is_open_) return core_.diag.Fail(Status::kBadState, "the session has a scheduler already");
  const uint32_t most = core_.plan.program.max_rows;
  if (options.step_rows > most) {
    return core_.diag.Fail(Status::kBadArgument,
                           "step_rows is %u, a run of this session has at most %u (prefill_chunk)",
                           options.step_rows, most);
  }
  const uint32_t usual = Max(core_.chunk_rows, core_.plan.options.max_sequences);
  step_rows_ = options.step_rows == 0 ? Min(usual, most) : options.step_rows;
  table_.Init({core_.memory.As<RequestRecord>(plan.requests), n},
              {core_.memory.As<uint32_t>(plan.order), n});
  events_.Init({core_.memory.As<RequestEvent>(plan.events), plan.n_events});
  wishes_ = {core_.memory.As<RowWish>(plan.wishes), sequences_.size()};
  if (plan.shares.bytes != 0) {
    shares_ = {core_.memory.As<SharedGuessPolicy::Share>(plan.shares), sequences_.size()};
  }
  guesses_ = GuessCounts();
  shown_ = {core_.memory.As<char>(plan.shown), static_cast<size_t>(plan.shown.bytes)};
  leases_.Init(options.on_drop, options.user);
  session_.constrainer.DropAll();  // they are the requests' now
  step_ = 0;
  is_open_ = true;
  return Status::kOk;
}

void Scheduler::Close() {
  if (!is_open_) return;
  for (uint32_t i = 0; i < table_.size(); ++i) {
    if (table_.At(i).is_running()) session_.constrainer.Drop(table_.At(i).sequence);
  }
  is_open_ = false;
}

uint32_t Scheduler::CountOf(RequestPhase phase) const {
  uint32_t n = 0;
  for (uint32_t i = 0; i < table_.size(); ++i) n += table_.At(i).phase == phase ? 1 : 0;
  return n;
}

uint64_t Scheduler::RequestOf(uint32_t sequence) const {
  for (uint32_t i = 0; i < table_.size(); ++i) {
    const RequestRecord& record = table_.At(i);
    if (record.is_running() && record.sequence == sequence) return record.id;
  }
  return 0;
}

Status Scheduler::FindLive(uint64_t id, RequestRecord** out) const {
  *out = table_.Find(id);
  if (*out != nullptr && (*out)->phase != RequestPhase::kEnded) return Status::kOk;
  return core_.diag.Fail(Status::kNotFound, "request %llu neither waits nor runs",
                         static_cast<unsigned long long>(id));
}

Status Scheduler::CheckPrompt(const Request& request) const {
  const SessionOptions& options = core_.plan.options;
  if (request.prompt.empty()) return core_.diag.Fail(Status::kBadArgument, "the prompt is empty");
  if (request.prompt.size() > options.context_tokens) {
    return core_.diag.Fail(Status::kContextFull, "%zu tokens do not fit a context of %u",
                           request.prompt.size(), options.context_tokens);
  }
  if (!request.embeddings.empty()) return sequences_.CheckMixed(request.prompt, request.embeddings);
  return sequences_.CheckIds(request.prompt);
}

Status Scheduler::Check(const Request& request) const {
  const SessionOptions& options = core_.plan.options;
  Diag& diag = core_.diag;
  ARN_TRY(CheckPrompt(request));
  if (leases_.PagesFor(request) > leases_.n_pages()) {
    return diag.Fail(Status::kContextFull,
                     "%zu tokens and a reply of up to %u need %u pages, the session has %u "
                     "(kv_tokens)",
                     request.prompt.size(), request.max_tokens, leases_.PagesFor(request),
                     leases_.n_pages());
  }
  ARN_TRY(CheckSampling(request.sampling, sequences_.sampling_limits(), &diag));
  if (request.has_constraint && options.constraint_bytes == 0) {
    return diag.Fail(Status::kBadState, "the session was created with constraint_bytes = 0");
  }
  if (request.constraint_waits && !request.has_constraint) {
    return diag.Fail(Status::kBadArgument, "constraint_waits is 1, and constraint is NULL");
  }
  ARN_TRY(sequences_.CheckAdapters(request.adapters, request.adapter_scales));
  if (core_.model.tokenizer == nullptr && !request.stops.empty()) {
    return diag.Fail(Status::kUnsupported, "stop strings need a tokenizer, the bundle has none");
  }
  for (const StringView& stop : request.stops) {
    if (stop.size != 0 && stop.size <= kMaxStopBytes) continue;
    return diag.Fail(Status::kBadArgument, "a stop string has %zu bytes, expected 1..%u", stop.size,
                     kMaxStopBytes);
  }
  return Status::kOk;
}

Status Scheduler::Submit(const Request& request, uint64_t* out_id) {
  *out_id = 0;
  ARN_TRY(Check(request));
  const RequestRecord* record = table_.Add(request);
  if (record == nullptr) {
    return core_.diag.Fail(Status::kBadState, "all %u requests of the session are taken (%s)",
                           table_.capacity(), "max_requests");
  }
  *out_id = record->id;
  return Status::kOk;
}

Status Scheduler::Cancel(uint64_t id) {
  RequestRecord* record = nullptr;
  ARN_TRY(FindLive(id, &record));
  End(record, static_cast<uint32_t>(Finish::kCancelled), Status::kOk);
  return Status::kOk;
}

Status Scheduler::Pause(uint64_t id, bool is_paused) {
  RequestRecord* record = nullptr;
  ARN_TRY(FindLive(id, &record));
  record->is_paused = is_paused;
  return Status::kOk;
}

Status Scheduler::Force(uint64_t id, Span<const int32_t> ids) {
  RequestRecord* record = nullptr;
  ARN_TRY(FindLive(id, &record));
  ARN_TRY(sequences_.CheckIds(ids));
  record->forced = ids;
  return Status::kOk;
}

Status Scheduler::BeginConstraint(uint64_t id) {
  RequestRecord* record = nullptr;
  ARN_TRY(FindLive(id, &record));
  if (!record->request.constraint_waits) {
    return core_.diag.Fail(Status::kBadState, "request %llu has no constraint that waits",
                           static_cast<unsigned long long>(id));
  }
  if (record->is_running()) ARN_TRY(SetConstraint(*record));
  record->request.constraint_waits = false;
  return Status::kOk;
}

Status Scheduler::Constrain(uint64_t id, TokenConstraint* constraint) {
  RequestRecord* record = nullptr;
  ARN_TRY(FindLive(id, &record));
  if (record->request.has_constraint || record->compiled != nullptr) {
    return core_.diag.Fail(Status::kBadState, "request %llu has a constraint",
                           static_cast<unsigned long long>(id));
  }
  record->compiled = constraint;
  if (record->is_running()) UseCompiled(*record);
  return Status::kOk;
}

bool Scheduler::NextEvent(RequestEvent* out) {
  if (events_.size() == 0) return false;
  *out = events_.Take();
  if (out->kind == RequestEventKind::kEnded) table_.Remove(out->request);
  return true;
}

void Scheduler::Put(const RequestRecord& record, RequestEvent event) {
  event.request = record.id;
  event.user = record.request.user;
  event.n_prompt = record.n_prompt();
  event.n_kept = record.n_kept;
  event.n_tokens = record.n_tokens;
  event.text = Keep(event.text);
  events_.Put(event);
}

StringView Scheduler::Keep(StringView text) {
  char* const at = shown_.data() + n_shown_;
  const size_t n = Min(text.size, shown_.size() - n_shown_);
  if (n != 0) std::memcpy(at, text.data, n);
  n_shown_ += n;
  return {at, n};
}

Span<char> Scheduler::TextBuffer(uint32_t sequence) const {
  const SchedulerPlan& plan = core_.plan.scheduler;
  return {core_.memory.As<char>(plan.text) + sequence * plan.text_bytes,
          static_cast<size_t>(plan.text_bytes)};
}

Span<int32_t> Scheduler::ChosenBuffer(uint32_t sequence) const {
  const SchedulerPlan& plan = core_.plan.scheduler;
  return {core_.memory.As<int32_t>(plan.chosen) + size_t{sequence} * plan.chosen_stride,
          plan.chosen_stride};
}

ReplyText& Scheduler::TextOf(const RequestRecord& record) const {
  return core_.memory.As<ReplyText>(core_.plan.scheduler.replies)[record.sequence];
}

void Scheduler::End(RequestRecord* record, uint32_t finish, Status status, StringView text) {
  RequestEvent event;
  event.kind = RequestEventKind::kEnded;
  event.finish = finish;
  event.status = status;
  event.text = text;
  if (record->is_running()) {
    if (status != Status::kOk) {
      const char* why = core_.diag.text();
      event.text = {why, Min<size_t>(std::strlen(why), core_.plan.scheduler.text_bytes)};
    }
    speculator_.Settle(record->sequence);
    session_.constrainer.Drop(record->sequence);
    leases_.Release(record->sequence);
  }
  record->phase = RequestPhase::kEnded;
  Put(*record, event);
}

}  // namespace arn
