/* Replies. The bundle says nothing of calls, so a reply is text. */
#include <stdlib.h>

#include "tests/capi/capi_case.h"

typedef struct reply_log {
  char text[256];
  size_t bytes;
  uint32_t n_others;
  int32_t answer;
} reply_log;

static int32_t on_event(void* user, uint32_t event, const char* text, size_t text_bytes) {
  reply_log* log = (reply_log*)user;
  if (event != ARN_REPLY_EVENT_TEXT || log->bytes + text_bytes >= sizeof log->text) {
    ++log->n_others;
    return 0;
  }
  memcpy(log->text + log->bytes, text, text_bytes);
  log->bytes += text_bytes;
  log->text[log->bytes] = '\0';
  return log->answer;
}

int capi_reply(capi_env* env) {
  arn_model* model = NULL;
  arn_reply* reply = NULL;
  char error[256] = "";
  int32_t ids[64];
  size_t n_ids = 0;
  const char said[] = "Hi, one two";
  CHECK_STATUS(ARN_OK, arn_model_open(env->text_path, NULL, error, sizeof error, &model));
  CHECK_STATUS(ARN_OK, arn_reply_create(model, NULL, NULL, 0, error, sizeof error, &reply));
  arn_reply_info info = ARN_REPLY_INFO_INIT;
  info.has_calls = 7;
  CHECK_STATUS(ARN_OK, arn_reply_get_info(reply, &info));
  CHECK(info.has_calls == 0 && info.has_reasoning == 0);
  CHECK(strcmp(info.reasoning_begin, "") == 0 && strcmp(info.reasoning_end, "") == 0);
  CHECK(arn_reply_in_reasoning(reply) == 0 && arn_reply_in_reasoning(NULL) == 0);

  CHECK_STATUS(ARN_OK, arn_tokenize(model, said, sizeof said - 1, ARN_TOKENIZE_NO_SPECIAL, NULL, 0,
                                    ids, 64, &n_ids));
  CHECK(n_ids > 0 && n_ids <= 64);
  reply_log log = {"", 0, 0, 0};
  CHECK_STATUS(ARN_OK, arn_reply_next(reply, ids[0], on_event, &log)); /* not started */
  CHECK(log.bytes == 0);
  CHECK_STATUS(ARN_OK, arn_reply_start(reply, NULL, 0));
  for (size_t i = 0; i < n_ids; ++i) {
    CHECK_STATUS(ARN_OK, arn_reply_next(reply, ids[i], on_event, &log));
    CHECK_STATUS(ARN_OK, arn_reply_next(reply, -1, on_event, &log));
  }
  CHECK_STATUS(ARN_OK, arn_reply_end(reply, on_event, &log));
  CHECK(strcmp(log.text, said) == 0 && log.n_others == 0);

  /* A callback drops the rest. */
  reply_log ended = {"", 0, 0, 1};
  CHECK_STATUS(ARN_OK, arn_reply_start(reply, "prompt", 6));
  CHECK_STATUS(ARN_OK, arn_reply_next_text(reply, "one", 3, on_event, &ended));
  CHECK_STATUS(ARN_OK, arn_reply_next_text(reply, "two", 3, on_event, &ended));
  CHECK_STATUS(ARN_OK, arn_reply_end(reply, on_event, &ended));
  CHECK(strcmp(ended.text, "one") == 0);
  arn_reply_destroy(reply);

  void* memory = aligned_alloc(64, 65536);
  CHECK(memory != NULL);
  arn_reply_options options = ARN_REPLY_OPTIONS_INIT;
  options.tools = "[{\"name\": \"get\"}]";
  options.tools_bytes = strlen(options.tools);
  CHECK_STATUS(ARN_OK, arn_reply_create(model, &options, memory, 65536, NULL, 0, &reply));
  CHECK((void*)reply == memory);
  arn_reply_destroy(reply);
  free(memory);
  arn_reply_destroy(NULL);
  arn_model_close(model);
  return 0;
}

int capi_reply_errors(capi_env* env) {
  arn_model *model = NULL, *without = NULL;
  arn_reply* reply = NULL;
  char error[256] = "";
  _Alignas(64) static char memory[1024];
  CHECK_STATUS(ARN_OK, arn_model_open(env->text_path, NULL, error, sizeof error, &model));
  CHECK_STATUS(ARN_OK, arn_model_open(env->path, NULL, error, sizeof error, &without));
  CHECK_STATUS(ARN_UNSUPPORTED,
               arn_reply_create(without, NULL, NULL, 0, error, sizeof error, &reply));
  CHECK(reply == NULL && strstr(error, "tokenizer") != NULL);
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_reply_create(NULL, NULL, NULL, 0, NULL, 0, &reply));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_reply_create(model, NULL, NULL, 0, NULL, 0, NULL));
  CHECK_STATUS(ARN_BAD_ARGUMENT,
               arn_reply_create(model, NULL, memory, sizeof memory, error, sizeof error, &reply));
  arn_reply_options options = ARN_REPLY_OPTIONS_INIT;
  options.tools = "{\"no\": \"list\"}";
  options.tools_bytes = strlen(options.tools);
  CHECK_STATUS(ARN_BAD_ARGUMENT,
               arn_reply_create(model, &options, NULL, 0, error, sizeof error, &reply));
  CHECK(strstr(error, "tools") != NULL);
  options.tools = "[1";
  options.tools_bytes = 2;
  CHECK_STATUS(ARN_BAD_ARGUMENT,
               arn_reply_create(model, &options, NULL, 0, error, sizeof error, &reply));
  options.tools = NULL;
  CHECK_STATUS(ARN_BAD_ARGUMENT,
               arn_reply_create(model, &options, NULL, 0, error, sizeof error, &reply));
  CHECK_STATUS(ARN_OK, arn_reply_create(model, NULL, NULL, 0, NULL, 0, &reply));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_reply_start(NULL, NULL, 0));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_reply_start(reply, NULL, 1));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_reply_next(reply, 1, NULL, NULL));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_reply_next_text(reply, NULL, 1, on_event, NULL));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_reply_end(reply, NULL, NULL));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_reply_get_info(reply, NULL));
  arn_reply_destroy(reply);
  arn_model_close(without);
  arn_model_close(model);
  return 0;
}
