/* Transcription: what a model that writes no speech down answers, and wrong arguments. */
#include "tests/capi/capi_case.h"

int capi_transcribe(capi_env* env) {
  char error[256] = "";
  arn_model* model = NULL;
  arn_session* session = NULL;
  CHECK_STATUS(ARN_OK, arn_model_open(env->path, NULL, error, sizeof error, &model));
  CHECK_STATUS(ARN_OK, arn_session_create(model, NULL, NULL, 0, error, sizeof error, &session));

  arn_transcribe_info info = ARN_TRANSCRIBE_INFO_INIT;
  CHECK_STATUS(ARN_UNSUPPORTED, arn_transcribe_get_info(model, &info));
  const char* name = error;
  CHECK_STATUS(ARN_NOT_FOUND, arn_transcribe_language(model, 0, &name));
  CHECK(name == NULL);
  uint64_t bytes = 1;
  CHECK_STATUS(ARN_UNSUPPORTED,
               arn_transcriber_plan(model, NULL, NULL, error, sizeof error, &bytes));
  CHECK(bytes == 0 && error[0] != '\0');
  arn_transcriber* transcriber = (arn_transcriber*)&bytes;
  CHECK_STATUS(ARN_UNSUPPORTED,
               arn_transcriber_create(session, NULL, NULL, 0, error, sizeof error, &transcriber));
  CHECK(transcriber == NULL && error[0] != '\0');

  CHECK_STATUS(ARN_BAD_ARGUMENT,
               arn_transcriber_create(session, NULL, NULL, 0, error, sizeof error, NULL));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_transcriber_plan(model, NULL, NULL, NULL, 0, NULL));
  const float silence[2] = {0.0f, 0.0f};
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_transcribe(NULL, silence, 2, NULL, NULL));
  CHECK(arn_transcriber_last_error(NULL) != NULL);
  arn_transcriber_destroy(NULL);
  arn_session_destroy(session);
  arn_model_close(model);
  return 0;
}
