// Implements arn_reply_* for libraries without chat templates (ARENITE_CHAT_TEMPLATES):
// arn_reply_create returns ARN_UNSUPPORTED.
#include "runtime/api/handles.h"
#include "runtime/api/reply_feed.h"

namespace arn::api {

Span<const int32_t> CloseReasoning(arn_reply*, uint32_t) { return {}; }

Status CheckBudget(const arn_reply*, Diag* diag) {
  return diag->Fail(Status::kUnsupported,
                    "this library is built without chat templates (ARENITE_CHAT_TEMPLATES)");
}

}  // namespace arn::api

arn_status arn_reply_create(const arn_model* model, const arn_reply_options*, void*, uint64_t,
                            char* error, size_t error_bytes, arn_reply** out_reply) {
  if (out_reply == nullptr) return ARN_BAD_ARGUMENT;
  *out_reply = nullptr;
  if (model == nullptr) return ARN_BAD_ARGUMENT;
  arn::Diag diag;
  const arn::Status status =
      diag.Fail(arn::Status::kUnsupported,
                "this library is built without chat templates (ARENITE_CHAT_TEMPLATES)");
  return arn::api::Report(status, diag, error, error_bytes);
}

void arn_reply_destroy(arn_reply*) {}

// Unreachable with a valid reply: arn_reply_create always fails.
arn_status arn_reply_get_info(const arn_reply*, arn_reply_info*) { return ARN_BAD_ARGUMENT; }

arn_status arn_reply_start(arn_reply*, const char*, size_t) { return ARN_BAD_ARGUMENT; }

arn_status arn_reply_next(arn_reply*, int32_t, arn_reply_callback, void*) {
  return ARN_BAD_ARGUMENT;
}

arn_status arn_reply_next_text(arn_reply*, const char*, size_t, arn_reply_callback, void*) {
  return ARN_BAD_ARGUMENT;
}

uint32_t arn_reply_in_reasoning(const arn_reply*) { return 0; }

arn_status arn_reply_end(arn_reply*, arn_reply_callback, void*) { return ARN_BAD_ARGUMENT; }
