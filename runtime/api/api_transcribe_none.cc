// Implements arn_transcribe_* and arn_transcriber_* for libraries without audio (ARENITE_AUDIO).
#include "runtime/api/handles.h"

namespace {

constexpr char kReason[] = "this library is built without transcription (ARENITE_AUDIO)";

arn_status Refuse(char* error, size_t error_bytes) {
  arn::Diag diag;
  const arn::Status status = diag.Fail(arn::Status::kUnsupported, "%s", kReason);
  return arn::api::Report(status, diag, error, error_bytes);
}

}  // namespace

extern "C" {

arn_status arn_transcribe_get_info(const arn_model*, arn_transcribe_info*) {
  return ARN_UNSUPPORTED;
}

arn_status arn_transcribe_language(const arn_model*, uint32_t, const char** out_name) {
  if (out_name != nullptr) *out_name = nullptr;
  return ARN_NOT_FOUND;
}

arn_status arn_transcriber_plan(const arn_model*, const arn_session_options*,
                                const arn_transcriber_options*, char* error, size_t error_bytes,
                                uint64_t* out_bytes) {
  if (out_bytes == nullptr) return ARN_BAD_ARGUMENT;
  *out_bytes = 0;
  return Refuse(error, error_bytes);
}

arn_status arn_transcriber_create(arn_session*, const arn_transcriber_options*, void*, uint64_t,
                                  char* error, size_t error_bytes,
                                  arn_transcriber** out_transcriber) {
  if (out_transcriber == nullptr) return ARN_BAD_ARGUMENT;
  *out_transcriber = nullptr;
  return Refuse(error, error_bytes);
}

// There is no transcriber for the others.
void arn_transcriber_destroy(arn_transcriber*) {}
const char* arn_transcriber_last_error(const arn_transcriber*) { return kReason; }
arn_status arn_transcribe(arn_transcriber*, const float*, size_t, const arn_transcribe_options*,
                          arn_transcribe_result*) {
  return ARN_BAD_ARGUMENT;
}

}  // extern "C"
