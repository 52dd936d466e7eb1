// Implements arn_constraint_* for libraries without constraints (ARENITE_CONSTRAINTS):
// arn_constraint_create and arn_session_set_constraint return ARN_UNSUPPORTED.
#include "runtime/api/handles.h"
#include "runtime/api/options.h"
#include "runtime/constrain/availability.h"

arn::Status arn::api::ReadConstraint(const Model&, const arn_constraint_options&,
                                     TokenConstraintOptions*, uint32_t*, Diag* diag) {
  return diag->Fail(Status::kUnsupported, "%s", kNoConstraints);
}

arn::Status arn::api::CheckBeginsReply(uint32_t, Diag*) { return Status::kOk; }

using namespace arn;       // NOLINT(google-build-using-namespace): the entry points below are C
using namespace arn::api;  // NOLINT(google-build-using-namespace)

arn_status arn_session_set_constraint(arn_session* session, const arn_constraint_options* options) {
  if (session == nullptr) return ARN_BAD_ARGUMENT;
  if (options == nullptr) return ARN_OK;
  return OnSession(session, [](Session& s) {
    return s.diag()->Fail(Status::kUnsupported, "%s", kNoConstraints);
  });
}

arn_status arn_session_constraint_stats(const arn_session*, arn_constraint_stats_data*) {
  return ARN_NOT_FOUND;
}

arn_status arn_constraint_create(const arn_model* model, const arn_constraint_options*, void*,
                                 uint64_t, char* error, size_t error_bytes,
                                 arn_constraint** out_constraint) {
  if (out_constraint == nullptr) return ARN_BAD_ARGUMENT;
  *out_constraint = nullptr;
  if (model == nullptr) return ARN_BAD_ARGUMENT;
  Diag diag;
  return Report(diag.Fail(Status::kUnsupported, "%s", kNoConstraints), diag, error, error_bytes);
}

arn_status arn_scheduler_compile_constraint(const arn_scheduler* scheduler,
                                            const arn_constraint_options*, void*, uint64_t,
                                            char* error, size_t error_bytes,
                                            arn_constraint** out_constraint) {
  if (out_constraint == nullptr) return ARN_BAD_ARGUMENT;
  *out_constraint = nullptr;
  if (scheduler == nullptr) return ARN_BAD_ARGUMENT;
  Diag diag;
  return Report(diag.Fail(Status::kUnsupported, "%s", kNoConstraints), diag, error, error_bytes);
}

void arn_constraint_destroy(arn_constraint*) {}

// Unreachable with a valid constraint: creating one always fails.
arn_status arn_scheduler_set_constraint(arn_scheduler*, uint64_t, arn_constraint*) {
  return ARN_BAD_ARGUMENT;
}

arn_status arn_constraint_reset(arn_constraint*) { return ARN_BAD_ARGUMENT; }

arn_status arn_constraint_test(arn_constraint*, int32_t, uint32_t*) { return ARN_BAD_ARGUMENT; }

arn_status arn_constraint_accept(arn_constraint*, const int32_t*, size_t, size_t*, uint64_t*) {
  return ARN_BAD_ARGUMENT;
}

arn_status arn_constraint_can_end(arn_constraint*, uint32_t*) { return ARN_BAD_ARGUMENT; }

arn_status arn_constraint_mask(arn_constraint*, uint32_t*, size_t) { return ARN_BAD_ARGUMENT; }

arn_status arn_constraint_stats(const arn_constraint*, arn_constraint_stats_data*) {
  return ARN_BAD_ARGUMENT;
}
