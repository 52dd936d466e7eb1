// Implements arn_scheduler_* for libraries without the scheduler (ARENITE_SCHEDULER):
// arn_scheduler_create returns ARN_UNSUPPORTED.
#include "runtime/api/handles.h"
#include "runtime/scheduler/availability.h"

arn_status arn_scheduler_create(arn_session* session, const arn_scheduler_options*, char* error,
                                size_t error_bytes, arn_scheduler** out_scheduler) {
  if (out_scheduler == nullptr) return ARN_BAD_ARGUMENT;
  *out_scheduler = nullptr;
  if (session == nullptr) return ARN_BAD_ARGUMENT;
  arn::Diag diag;
  const arn::Status status = diag.Fail(arn::Status::kUnsupported, "%s", arn::kNoScheduler);
  return arn::api::Report(status, diag, error, error_bytes);
}

void arn_scheduler_destroy(arn_scheduler*) {}

const char* arn_scheduler_last_error(const arn_scheduler*) { return arn::kNoScheduler; }

// Unreachable with a valid scheduler: arn_scheduler_create always fails.
arn_status arn_scheduler_submit(arn_scheduler*, const arn_request*, uint64_t* out_request) {
  if (out_request != nullptr) *out_request = 0;
  return ARN_BAD_ARGUMENT;
}

arn_status arn_scheduler_cancel(arn_scheduler*, uint64_t) { return ARN_BAD_ARGUMENT; }

arn_status arn_scheduler_pause(arn_scheduler*, uint64_t, uint32_t) { return ARN_BAD_ARGUMENT; }

arn_status arn_scheduler_force(arn_scheduler*, uint64_t, const int32_t*, size_t) {
  return ARN_BAD_ARGUMENT;
}

arn_status arn_scheduler_begin_constraint(arn_scheduler*, uint64_t) { return ARN_BAD_ARGUMENT; }

arn_status arn_scheduler_step(arn_scheduler*, arn_step_result*) { return ARN_BAD_ARGUMENT; }

arn_status arn_scheduler_next_event(arn_scheduler*, arn_scheduler_event*) {
  return ARN_BAD_ARGUMENT;
}

arn_status arn_scheduler_get_request(const arn_scheduler*, uint64_t, arn_request_info*) {
  return ARN_BAD_ARGUMENT;
}

arn_status arn_scheduler_get_info(const arn_scheduler*, arn_scheduler_info*) {
  return ARN_BAD_ARGUMENT;
}

arn_status arn_scheduler_save_sequence(arn_scheduler*, uint32_t, void*, uint64_t,
                                       uint64_t* out_bytes) {
  if (out_bytes != nullptr) *out_bytes = 0;
  return ARN_BAD_ARGUMENT;
}

arn_status arn_scheduler_restore_sequence(arn_scheduler*, const void*, uint64_t,
                                          const arn_restore_options*, uint32_t*) {
  return ARN_BAD_ARGUMENT;
}

uint64_t arn_scheduler_request_of(const arn_scheduler*, uint32_t) { return 0; }
