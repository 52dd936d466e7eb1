// Implements arn_chat_* for libraries without chat templates (ARENITE_CHAT_TEMPLATES):
// arn_chat_create returns ARN_UNSUPPORTED.
#include "runtime/api/handles.h"

namespace {

constexpr char kReason[] = "this library is built without chat templates (ARENITE_CHAT_TEMPLATES)";

}  // namespace

arn_status arn_chat_create(const arn_model* model, const arn_chat_options*, void*, uint64_t,
                           char* error, size_t error_bytes, arn_chat** out_chat) {
  if (out_chat == nullptr) return ARN_BAD_ARGUMENT;
  *out_chat = nullptr;
  if (model == nullptr) return ARN_BAD_ARGUMENT;
  arn::Diag diag;
  const arn::Status status = diag.Fail(arn::Status::kUnsupported, "%s", kReason);
  return arn::api::Report(status, diag, error, error_bytes);
}

void arn_chat_destroy(arn_chat*) {}

// Unreachable with a valid chat: arn_chat_create always fails.
arn_status arn_chat_render(arn_chat*, const arn_chat_input*, char*, size_t, size_t*) {
  return ARN_BAD_ARGUMENT;
}

arn_status arn_chat_plain_spans(const arn_chat*, const arn_text_span** out_spans,
                                size_t* out_count) {
  if (out_spans != nullptr) *out_spans = nullptr;
  if (out_count != nullptr) *out_count = 0;
  return ARN_BAD_ARGUMENT;
}

const char* arn_chat_last_error(const arn_chat*) { return kReason; }
