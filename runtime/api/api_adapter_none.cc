// Replaces api_adapter.cc in libraries without adapters (ARENITE_ADAPTERS): none opens.
#include "runtime/api/handles.h"

using namespace arn;       // NOLINT(google-build-using-namespace): the entry points below are C
using namespace arn::api;  // NOLINT(google-build-using-namespace)

extern "C" {

arn_status arn_adapter_open(const arn_model*, const char*, const arn_adapter_options*, char* error,
                            size_t error_bytes, arn_adapter** out_adapter) {
  if (out_adapter == nullptr) return ARN_BAD_ARGUMENT;
  *out_adapter = nullptr;
  Diag diag;
  (void)diag.Fail(Status::kUnsupported, "%s", kNoAdapters);
  return Report(Status::kUnsupported, diag, error, error_bytes);
}

void arn_adapter_close(arn_adapter*) {}

arn_status arn_adapter_get_info(const arn_adapter*, arn_adapter_info*) { return ARN_BAD_ARGUMENT; }

arn_status arn_session_set_adapters(arn_session* session, const uint32_t*, const float*, size_t n) {
  if (session == nullptr) return ARN_BAD_ARGUMENT;
  return n == 0 ? ARN_OK : ARN_UNSUPPORTED;
}

}  // extern "C"
