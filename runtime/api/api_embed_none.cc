// Implements arn_embed_* and arn_rerank for libraries without embedders (ARENITE_EMBEDDINGS).
#include "runtime/api/handles.h"

using namespace arn;       // NOLINT(google-build-using-namespace): the entry points below are C
using namespace arn::api;  // NOLINT(google-build-using-namespace)

namespace {

arn_status Refuse(char* error, size_t error_bytes) {
  Diag diag;
  return Report(diag.Fail(Status::kUnsupported,
                          "this library is built without embedders (ARENITE_EMBEDDINGS)"),
                diag, error, error_bytes);
}

}  // namespace

extern "C" {

arn_status arn_embed_get_info(const arn_model*, arn_embed_info*) { return ARN_UNSUPPORTED; }

arn_status arn_embed_prompt(const arn_model*, uint32_t, const char** out_name,
                            const char** out_text) {
  if (out_name != nullptr) *out_name = nullptr;
  if (out_text != nullptr) *out_text = nullptr;
  return ARN_NOT_FOUND;
}

arn_status arn_embed_plan(const arn_model*, const arn_embed_options*, char* error,
                          size_t error_bytes, arn_embed_plan_data*) {
  return Refuse(error, error_bytes);
}

arn_status arn_embedder_create(const arn_model*, const arn_embed_options*, void*, uint64_t,
                               char* error, size_t error_bytes, arn_embedder** out_embedder) {
  if (out_embedder == nullptr) return ARN_BAD_ARGUMENT;
  *out_embedder = nullptr;
  return Refuse(error, error_bytes);
}

// There is no embedder for the others.
void arn_embedder_destroy(arn_embedder*) {}
const char* arn_embedder_last_error(const arn_embedder*) { return ""; }
void arn_embedder_cancel(arn_embedder*) {}
arn_status arn_embed(arn_embedder*, const char*, const arn_text*, size_t, float*, size_t) {
  return ARN_BAD_ARGUMENT;
}
arn_status arn_embed_ids(arn_embedder*, const int32_t*, size_t, const uint32_t*, const uint32_t*,
                         size_t, float*, size_t) {
  return ARN_BAD_ARGUMENT;
}
arn_status arn_rerank(arn_embedder*, const char*, arn_text, const arn_text*, size_t, float*,
                      size_t) {
  return ARN_BAD_ARGUMENT;
}
arn_status arn_embedder_get_counts(const arn_embedder*, arn_embed_counts*) {
  return ARN_BAD_ARGUMENT;
}

}  // extern "C"
