// Implements arn_conversation_* for libraries without chat templates (ARENITE_CHAT_TEMPLATES):
// arn_conversation_create returns ARN_UNSUPPORTED.
#include "runtime/api/handles.h"

namespace {

constexpr char kReason[] = "this library is built without chat templates (ARENITE_CHAT_TEMPLATES)";

arn_status Refuse(char* error, size_t error_bytes) {
  arn::Diag diag;
  const arn::Status status = diag.Fail(arn::Status::kUnsupported, "%s", kReason);
  return arn::api::Report(status, diag, error, error_bytes);
}

}  // namespace

arn_status arn_conversation_plan(const arn_model*, const arn_session_options*,
                                 const arn_conversation_options*, char* error, size_t error_bytes,
                                 uint64_t* out_bytes) {
  if (out_bytes == nullptr) return ARN_BAD_ARGUMENT;
  *out_bytes = 0;
  return Refuse(error, error_bytes);
}

arn_status arn_conversation_create(arn_session*, const arn_conversation_options*, void*, uint64_t,
                                   char* error, size_t error_bytes,
                                   arn_conversation** out_conversation) {
  if (out_conversation == nullptr) return ARN_BAD_ARGUMENT;
  *out_conversation = nullptr;
  return Refuse(error, error_bytes);
}

void arn_conversation_destroy(arn_conversation*) {}

const char* arn_conversation_last_error(const arn_conversation*) { return kReason; }

// Unreachable with a valid conversation: arn_conversation_create always fails.
arn_status arn_conversation_add(arn_conversation*, const char*, const char*, size_t) {
  return ARN_BAD_ARGUMENT;
}

arn_status arn_conversation_add_json(arn_conversation*, const char*, size_t) {
  return ARN_BAD_ARGUMENT;
}

arn_status arn_conversation_add_tool_result(arn_conversation*, uint32_t, const char*, size_t) {
  return ARN_BAD_ARGUMENT;
}

arn_status arn_conversation_reply(arn_conversation*, const arn_generate_options*,
                                  arn_reply_callback, void*, arn_conversation_result*) {
  return ARN_BAD_ARGUMENT;
}

arn_status arn_conversation_undo_reply(arn_conversation*) { return ARN_BAD_ARGUMENT; }

arn_status arn_conversation_undo(arn_conversation*) { return ARN_BAD_ARGUMENT; }

arn_status arn_conversation_truncate(arn_conversation*, uint32_t) { return ARN_BAD_ARGUMENT; }

arn_status arn_conversation_get_info(const arn_conversation*, arn_conversation_info*) {
  return ARN_BAD_ARGUMENT;
}

arn_status arn_conversation_messages(const arn_conversation*, const char** out_json,
                                     size_t* out_bytes) {
  if (out_json != nullptr) *out_json = nullptr;
  if (out_bytes != nullptr) *out_bytes = 0;
  return ARN_BAD_ARGUMENT;
}
