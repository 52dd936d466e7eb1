/* Adapters: opened, described, used by a session, and taken away again. */
#include <string.h>

#include "tests/capi/capi_case.h"

enum { kVocab = 61 };

static arn_status logits_with(arn_session* session, const uint32_t* adapters, const float* scales,
                              size_t n, float* out) {
  const int32_t ids[] = {3, 10, 17};
  const float* logits = NULL;
  arn_status status = arn_session_reset(session);
  if (status == ARN_OK) status = arn_session_set_adapters(session, adapters, scales, n);
  if (status == ARN_OK) status = arn_session_prefill(session, ids, 3);
  if (status == ARN_OK) status = arn_session_logits(session, &logits);
  if (status == ARN_OK) memcpy(out, logits, kVocab * sizeof *out);
  return status;
}

int capi_adapter(capi_env* env) {
  arn_model* model = NULL;
  arn_adapter* adapter = NULL;
  arn_session* session = NULL;
  arn_adapter_options options = ARN_ADAPTER_OPTIONS_INIT;
  arn_adapter_info info = ARN_ADAPTER_INFO_INIT;
  arn_session_options session_options = ARN_SESSION_OPTIONS_INIT;
  const arn_adapter* list[1];
  const uint32_t first = 0;
  const float zero = 0.0f;
  float base[kVocab], adapted[kVocab], scaled[kVocab], again[kVocab];
  char error[256] = "";
  CHECK_STATUS(ARN_OK, arn_model_open(env->path, NULL, NULL, 0, &model));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_adapter_open(model, env->adapter_path, NULL, NULL, 0, NULL));
  CHECK_STATUS(ARN_BAD_ARGUMENT,
               arn_adapter_open(model, NULL, NULL, error, sizeof error, &adapter));
  CHECK(adapter == NULL && strstr(error, "path") != NULL);
  CHECK_STATUS(ARN_BAD_BUNDLE,
               arn_adapter_open(model, env->path, NULL, error, sizeof error, &adapter));
  CHECK(adapter == NULL && strstr(error, "no adapter") != NULL);
  options.struct_size = 3;
  CHECK_STATUS(ARN_BAD_ARGUMENT,
               arn_adapter_open(model, env->adapter_path, &options, NULL, 0, &adapter));
  options.struct_size = sizeof options;
  CHECK_STATUS(ARN_OK, arn_adapter_open(model, env->adapter_path, &options, NULL, 0, &adapter));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_adapter_get_info(NULL, &info));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_adapter_get_info(adapter, NULL));
  CHECK_STATUS(ARN_OK, arn_adapter_get_info(adapter, &info));
  CHECK(strcmp(info.name, "tiny") == 0 && info.n_changes == 8 && info.max_rank == 6);

  list[0] = adapter;
  session_options.adapters = list;
  session_options.n_adapters = 1;
  CHECK_STATUS(ARN_OK,
               arn_session_create(model, &session_options, NULL, 0, error, sizeof error, &session));
  CHECK_STATUS(ARN_OK, logits_with(session, NULL, NULL, 0, base));
  CHECK_STATUS(ARN_OK, logits_with(session, &first, NULL, 1, adapted));
  CHECK_STATUS(ARN_OK, logits_with(session, &first, &zero, 1, scaled));
  CHECK_STATUS(ARN_OK, logits_with(session, NULL, NULL, 0, again));
  CHECK(memcmp(base, adapted, sizeof base) != 0);
  CHECK(memcmp(base, again, sizeof base) == 0);
  CHECK(memcmp(base, scaled, sizeof base) == 0);
  CHECK_STATUS(ARN_BAD_STATE, arn_session_set_adapters(session, &first, NULL, 1));
  CHECK(strstr(arn_session_last_error(session), "empty") != NULL);
  arn_session_destroy(session);
  arn_adapter_close(adapter);
  arn_adapter_close(NULL);
  arn_model_close(model);
  return 0;
}
