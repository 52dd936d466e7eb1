// Implements arn_scheduler_*.
#include "runtime/api/handles.h"
#include "runtime/api/options.h"
#include "runtime/api/state_memory.h"
#include "runtime/model/image_place.h"

namespace arn::api {
namespace {

static_assert(ARN_REQUEST_EVENT_STARTED == static_cast<uint32_t>(RequestEventKind::kStarted));
static_assert(ARN_REQUEST_EVENT_TOKEN == static_cast<uint32_t>(RequestEventKind::kToken));
static_assert(ARN_REQUEST_EVENT_ENDED == static_cast<uint32_t>(RequestEventKind::kEnded));
static_assert(ARN_REQUEST_STATE_WAITING == static_cast<uint32_t>(RequestPhase::kWaiting));
static_assert(ARN_REQUEST_STATE_PROMPT == static_cast<uint32_t>(RequestPhase::kPrompt));
static_assert(ARN_REQUEST_STATE_REPLY == static_cast<uint32_t>(RequestPhase::kReply));
static_assert(ARN_REQUEST_STATE_ENDED == static_cast<uint32_t>(RequestPhase::kEnded));

// The handle is the session: it has one scheduler.
Session* SessionOf(arn_scheduler* scheduler) { return reinterpret_cast<Session*>(scheduler); }
const Session& SessionOf(const arn_scheduler* scheduler) {
  return *reinterpret_cast<const Session*>(scheduler);
}

// Runs `call`, a Status(Scheduler&, Diag*). REQUIRES: scheduler is not null.
template <typename Call>
arn_status OnScheduler(arn_scheduler* scheduler, const Call& call) {
  return BesideScheduler(reinterpret_cast<arn_session*>(scheduler),
                         [&](Session& s) { return call(s.scheduler(), s.diag()); });
}

Status CheckList(const char* name, const void* list, size_t n, Diag* diag) {
  if (list != nullptr || n == 0) return Status::kOk;
  return diag->Fail(Status::kBadArgument, "%s is NULL with %zu elements", name, n);
}

Status ReadRequest(const Session& session, const arn_request* request, Request* out, Diag* diag) {
  arn_request read = ARN_REQUEST_INIT;
  ARN_TRY(ReadStruct(request, "arn_request", &read, diag));
  ARN_TRY(CheckList("ids", read.ids, read.n_ids, diag));
  ARN_TRY(CheckList("embeddings", read.embeddings, read.n_embeddings, diag));
  ARN_TRY(CheckList("adapters", read.adapters, read.n_adapters, diag));
  ARN_TRY(CheckList("extra_eos_ids", read.extra_eos_ids, read.n_extra_eos_ids, diag));
  ARN_TRY(CheckFlag("constraint_waits", read.constraint_waits, diag));
  ARN_TRY(CheckFlag("ignore_eos", read.ignore_eos, diag));
  ARN_TRY(CheckFlag("one_by_one", read.one_by_one, diag));
  ARN_TRY(CheckFlag("no_guesses", read.no_guesses, diag));
  out->prompt = {read.ids, read.n_ids};
  out->embeddings = {read.embeddings, read.n_embeddings * EmbeddingFloats(session.model().spec)};
  ARN_TRY(ReadSampling(read.sampling, &out->sampling, diag));
  if (read.constraint != nullptr) {
    uint32_t first = 0;
    ARN_TRY(ReadConstraint(session.model(), *read.constraint, &out->constraint, &first, diag));
    ARN_TRY(CheckBeginsReply(first, diag));
    out->has_constraint = true;
  }
  out->constraint_waits = read.constraint_waits == 1;
  out->adapters = {read.adapters, read.n_adapters};
  out->adapter_scales = read.adapter_scales;
  out->extra_eos_ids = {read.extra_eos_ids, read.n_extra_eos_ids};
  ARN_TRY(ReadStops(read.stops, read.n_stops, &out->stops, diag));
  out->max_tokens = read.max_tokens;
  out->ignore_eos = read.ignore_eos == 1;
  out->one_by_one = read.one_by_one == 1;
  out->no_guesses = read.no_guesses == 1;
  out->user = read.user;
  return Status::kOk;
}

Status WriteEvent(const RequestEvent& event, arn_scheduler_event* out_event) {
  arn_scheduler_event out = ARN_SCHEDULER_EVENT_INIT;
  out.kind = static_cast<uint32_t>(event.kind);
  out.finish = event.finish;
  out.request = event.request;
  out.user = event.user;
  out.status = ToC(event.status);
  out.id = event.id;
  out.text = event.text.data;
  out.text_bytes = event.text.size;
  out.n_prompt_tokens = event.n_prompt;
  out.n_kept = event.n_kept;
  out.n_tokens = event.n_tokens;
  return WriteStruct(out, out_event);
}

}  // namespace
}  // namespace arn::api

using namespace arn;       // NOLINT(google-build-using-namespace): the entry points below are C
using namespace arn::api;  // NOLINT(google-build-using-namespace)

extern "C" {

arn_status arn_scheduler_create(arn_session* session, const arn_scheduler_options* options,
                                char* error, size_t error_bytes, arn_scheduler** out_scheduler) {
  if (out_scheduler == nullptr) return ARN_BAD_ARGUMENT;
  *out_scheduler = nullptr;
  if (session == nullptr) return ARN_BAD_ARGUMENT;
  Session& s = *ToSession(session);
  const arn_status status = BesideScheduler(session, [&](Session&) {
    arn_scheduler_options read = ARN_SCHEDULER_OPTIONS_INIT;
    ARN_TRY(ReadStruct(options, "arn_scheduler_options", &read, s.diag()));
    return s.scheduler().Open({read.step_rows, read.on_drop, read.user});
  });
  if (status == ARN_OK) *out_scheduler = reinterpret_cast<arn_scheduler*>(session);
  return Report(static_cast<Status>(status), *s.diag(), error, error_bytes);
}

void arn_scheduler_destroy(arn_scheduler* scheduler) {
  if (scheduler != nullptr) SessionOf(scheduler)->scheduler().Close();
}

const char* arn_scheduler_last_error(const arn_scheduler* scheduler) {
  return scheduler == nullptr ? "" : SessionOf(scheduler).diag().text();
}

arn_status arn_scheduler_submit(arn_scheduler* scheduler, const arn_request* request,
                                uint64_t* out_request) {
  if (out_request == nullptr) return ARN_BAD_ARGUMENT;
  *out_request = 0;
  if (scheduler == nullptr || request == nullptr) return ARN_BAD_ARGUMENT;
  return OnScheduler(scheduler, [&](Scheduler& s, Diag* diag) {
    Request read;
    ARN_TRY(ReadRequest(*SessionOf(scheduler), request, &read, diag));
    return s.Submit(read, out_request);
  });
}

arn_status arn_scheduler_cancel(arn_scheduler* scheduler, uint64_t request) {
  if (scheduler == nullptr) return ARN_BAD_ARGUMENT;
  return OnScheduler(scheduler, [&](Scheduler& s, Diag*) { return s.Cancel(request); });
}

arn_status arn_scheduler_pause(arn_scheduler* scheduler, uint64_t request, uint32_t pauses) {
  if (scheduler == nullptr) return ARN_BAD_ARGUMENT;
  return OnScheduler(scheduler, [&](Scheduler& s, Diag* diag) {
    ARN_TRY(CheckFlag("pauses", pauses, diag));
    return s.Pause(request, pauses == 1);
  });
}

arn_status arn_scheduler_force(arn_scheduler* scheduler, uint64_t request, const int32_t* ids,
                               size_t n) {
  if (scheduler == nullptr || (ids == nullptr && n > 0)) return ARN_BAD_ARGUMENT;
  return OnScheduler(scheduler, [&](Scheduler& s, Diag*) { return s.Force(request, {ids, n}); });
}

arn_status arn_scheduler_begin_constraint(arn_scheduler* scheduler, uint64_t request) {
  if (scheduler == nullptr) return ARN_BAD_ARGUMENT;
  return OnScheduler(scheduler, [&](Scheduler& s, Diag*) { return s.BeginConstraint(request); });
}

arn_status arn_scheduler_step(arn_scheduler* scheduler, arn_step_result* out_result) {
  if (scheduler == nullptr) return ARN_BAD_ARGUMENT;
  return OnScheduler(scheduler, [&](Scheduler& s, Diag*) {
    StepCounts counts;
    const Status status = s.Step(&counts);
    if (out_result == nullptr) return status;
    arn_step_result out = ARN_STEP_RESULT_INIT;
    out.n_rows = counts.n_rows;
    out.n_prompt_rows = counts.n_prompt_rows;
    out.n_chosen = counts.n_chosen;
    out.n_running = counts.n_running;
    out.n_waiting = counts.n_waiting;
    out.n_guess_rows = counts.n_guess_rows;
    out.n_put_off = counts.n_put_off;
    const Status written = WriteStruct(out, out_result);
    return status == Status::kOk ? written : status;
  });
}

arn_status arn_scheduler_next_event(arn_scheduler* scheduler, arn_scheduler_event* out_event) {
  if (scheduler == nullptr || out_event == nullptr) return ARN_BAD_ARGUMENT;
  RequestEvent event;
  if (!SessionOf(scheduler)->scheduler().NextEvent(&event)) return ARN_NOT_FOUND;
  return ToC(WriteEvent(event, out_event));
}

arn_status arn_scheduler_get_request(const arn_scheduler* scheduler, uint64_t request,
                                     arn_request_info* out_info) {
  if (scheduler == nullptr || out_info == nullptr) return ARN_BAD_ARGUMENT;
  const Session& session = SessionOf(scheduler);
  const RequestRecord* record = session.scheduler().Find(request);
  if (record == nullptr) return ARN_NOT_FOUND;
  arn_request_info out = ARN_REQUEST_INFO_INIT;
  out.state = static_cast<uint32_t>(record->phase);
  out.sequence = record->sequence;
  if (record->is_running()) {
    const uint32_t length = session.sequences().Length(record->sequence);
    out.n_prompt_done = length < record->n_prompt() ? length : record->n_prompt();
  }
  out.n_tokens = record->n_tokens;
  out.is_paused = record->is_paused ? 1 : 0;
  out.guesses_proposed = record->n_proposed;
  out.guesses_accepted = record->n_accepted;
  return ToC(WriteStruct(out, out_info));
}

arn_status arn_scheduler_get_info(const arn_scheduler* scheduler, arn_scheduler_info* out_info) {
  if (scheduler == nullptr || out_info == nullptr) return ARN_BAD_ARGUMENT;
  const Session& session = SessionOf(scheduler);
  arn_scheduler_info out = ARN_SCHEDULER_INFO_INIT;
  out.step_rows = session.scheduler().step_rows();
  out.max_requests = session.plan().options.max_requests;
  out.n_waiting = session.scheduler().n_waiting();
  out.n_running = session.scheduler().n_running();
  out.n_dropped = session.scheduler().n_dropped();
  const GuessCounts& guesses = session.scheduler().guesses();
  out.guesses_proposed = guesses.proposed;
  out.guesses_accepted = guesses.accepted;
  out.guess_steps = guesses.steps;
  out.guess_rows = guesses.rows;
  return ToC(WriteStruct(out, out_info));
}

arn_status arn_scheduler_save_sequence(arn_scheduler* scheduler, uint32_t sequence, void* buffer,
                                       uint64_t capacity, uint64_t* out_bytes) {
  if (out_bytes == nullptr) return ARN_BAD_ARGUMENT;
  *out_bytes = 0;
  if (scheduler == nullptr || (buffer == nullptr && capacity > 0)) return ARN_BAD_ARGUMENT;
  return OnScheduler(scheduler, [&](Scheduler& s, Diag* diag) {
    uint64_t bytes = 0;
    ARN_TRY(s.SaveSequenceBytes(sequence, &bytes));
    *out_bytes = bytes;
    return SaveInto(
        buffer, capacity, bytes,
        [&](const StateSink& sink) { return s.SaveSequence(sequence, sink); }, diag);
  });
}

arn_status arn_scheduler_restore_sequence(arn_scheduler* scheduler, const void* data,
                                          uint64_t bytes, const arn_restore_options* options,
                                          uint32_t* out_sequence) {
  if (scheduler == nullptr || (data == nullptr && bytes > 0)) return ARN_BAD_ARGUMENT;
  return OnScheduler(scheduler, [&](Scheduler& s, Diag* diag) {
    StateSource source;
    ARN_TRY(ReadRestoreOptions(options, /*by_default=*/true, &source, diag));
    ARN_TRY(ReadStateBytes(data, bytes, &source, diag));
    uint32_t sequence = 0;
    ARN_TRY(s.RestoreSequence(source, &sequence));
    if (out_sequence != nullptr) *out_sequence = sequence;
    return Status::kOk;
  });
}

uint64_t arn_scheduler_request_of(const arn_scheduler* scheduler, uint32_t sequence) {
  return scheduler == nullptr ? 0 : SessionOf(scheduler).scheduler().RequestOf(sequence);
}

}  // extern "C"
