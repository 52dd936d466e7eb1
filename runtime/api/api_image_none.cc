// Implements arn_image_* for libraries without vision (ARENITE_VISION).
#include "arenite/profile.h"
#include "runtime/api/handles.h"

using namespace arn;       // NOLINT(google-build-using-namespace): the entry points below are C
using namespace arn::api;  // NOLINT(google-build-using-namespace)

namespace {

arn_status RefuseImages(char* error, size_t error_bytes) {
  Diag diag;
  return Report(
      diag.Fail(Status::kUnsupported, "this library is built without vision (ARENITE_VISION)"),
      diag, error, error_bytes);
}

}  // namespace

extern "C" {

arn_status arn_image_get_info(const arn_model*, arn_image_info*) { return ARN_UNSUPPORTED; }

arn_status arn_image_get_layout(const arn_model*, uint32_t, uint32_t, char* error,
                                size_t error_bytes, arn_image_layout*) {
  return RefuseImages(error, error_bytes);
}

arn_status arn_image_text(const arn_model*, uint32_t, uint32_t, char*, size_t, size_t* out_bytes) {
  if (out_bytes != nullptr) *out_bytes = 0;
  return ARN_UNSUPPORTED;
}

arn_status arn_image_expand(const arn_model*, const arn_image_size*, size_t, const char*, size_t,
                            const arn_text_span*, size_t, char* error, size_t error_bytes, char*,
                            size_t, size_t* out_bytes, arn_text_span*) {
  if (out_bytes != nullptr) *out_bytes = 0;
  return RefuseImages(error, error_bytes);
}

arn_status arn_image_count(const arn_model*, const arn_image_options*, const arn_gpu_traits*,
                           arn_dispatch_callback, void*, char* error, size_t error_bytes,
                           uint32_t*) {
  return RefuseImages(error, error_bytes);
}

arn_status arn_image_plan(const arn_model*, const arn_image_options*, char* error,
                          size_t error_bytes, arn_image_plan_data*) {
  return RefuseImages(error, error_bytes);
}

arn_status arn_image_encoder_create(const arn_model*, const arn_image_options*, void*, uint64_t,
                                    char* error, size_t error_bytes,
                                    arn_image_encoder** out_encoder) {
  if (out_encoder == nullptr) return ARN_BAD_ARGUMENT;
  *out_encoder = nullptr;
  return RefuseImages(error, error_bytes);
}

void arn_image_encoder_destroy(arn_image_encoder*) {}

const char* arn_image_encoder_last_error(const arn_image_encoder*) { return ""; }

arn_status arn_image_encoder_backend(const arn_image_encoder*, arn_backend_info*) {
  return ARN_UNSUPPORTED;
}

void arn_image_encoder_cancel(arn_image_encoder*) {}

arn_status arn_image_encode(arn_image_encoder*, const arn_image*, float*, size_t,
                            uint32_t* out_n_embeddings) {
  if (out_n_embeddings != nullptr) *out_n_embeddings = 0;
  return ARN_UNSUPPORTED;
}

arn_status arn_image_encoder_get_counts(const arn_image_encoder*, arn_image_counts*) {
  return ARN_UNSUPPORTED;
}

}  // extern "C"
