/* Tokens and text. */
#include <stdlib.h>

#include "tests/capi/capi_case.h"

static const char kText[] = "Once upon a time, there was a small fox. \xF0\x9F\xA6\x8A";

static int open_text(capi_env* env, arn_model** model) {
  char error[256] = "";
  CHECK_STATUS(ARN_OK, arn_model_open(env->text_path, NULL, error, sizeof error, model));
  return 0;
}

int capi_tokenize(capi_env* env) {
  arn_model* model = NULL;
  int32_t ids[128], again[128];
  size_t count = 0, needed = 0;
  char text[256];
  size_t bytes = 0;
  if (open_text(env, &model) != 0) return 1;
  CHECK_STATUS(ARN_BUFFER_TOO_SMALL,
               arn_tokenize(model, kText, sizeof kText - 1, 0, NULL, 0, NULL, 0, &needed));
  CHECK(needed > 3 && needed < 128);
  ids[needed] = -77;
  CHECK_STATUS(ARN_OK,
               arn_tokenize(model, kText, sizeof kText - 1, 0, NULL, 0, ids, needed, &count));
  CHECK(count == needed && ids[needed] == -77);
  const size_t scratch_bytes = arn_tokenize_scratch_bytes(model, sizeof kText - 1);
  CHECK(scratch_bytes > 0 && scratch_bytes < (1u << 30));
  char* scratch = aligned_alloc(16, (scratch_bytes + 15) / 16 * 16);
  CHECK(scratch != NULL);
  CHECK_STATUS(ARN_OK, arn_tokenize(model, kText, sizeof kText - 1, 0, scratch, scratch_bytes,
                                    again, 128, &count));
  free(scratch);
  CHECK(count == needed && memcmp(ids, again, count * sizeof ids[0]) == 0);
  CHECK_STATUS(ARN_OK, arn_detokenize(model, ids, count, 0, text, sizeof text, &bytes));
  CHECK(bytes == sizeof kText - 1 && memcmp(text, kText, bytes) == 0);
  CHECK_STATUS(ARN_OK,
               arn_tokenize(model, NULL, 0, ARN_TOKENIZE_NO_SPECIAL, NULL, 0, ids, 128, &count));
  CHECK(count == 0);
  arn_model_close(model);
  return 0;
}

int capi_tokenize_errors(capi_env* env) {
  arn_model* model = NULL;
  int32_t ids[4];
  size_t count = 9;
  _Alignas(16) static char scratch[64];
  if (open_text(env, &model) != 0) return 1;
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_tokenize(NULL, "a", 1, 0, NULL, 0, ids, 4, &count));
  CHECK(count == 0);
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_tokenize(model, "a", 1, 0, NULL, 0, ids, 4, NULL));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_tokenize(model, NULL, 1, 0, NULL, 0, ids, 4, &count));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_tokenize(model, "a", 1, 0, NULL, 0, NULL, 4, &count));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_tokenize(model, "a", 1, 8, NULL, 0, ids, 4, &count));
  CHECK_STATUS(ARN_BAD_ARGUMENT,
               arn_tokenize(model, "a", 1, 0, scratch + 1, sizeof scratch - 1, ids, 4, &count));
  CHECK_STATUS(ARN_BUFFER_TOO_SMALL, arn_tokenize(model, "a", 1, 0, scratch, 1, ids, 4, &count));
  CHECK_STATUS(ARN_BUFFER_TOO_SMALL,
               arn_tokenize(model, kText, sizeof kText - 1, 0, NULL, 0, ids, 2, &count));
  CHECK(count > 2);
  CHECK(arn_tokenize_scratch_bytes(NULL, 100) == 0);
  arn_model_close(model);
  return 0;
}

int capi_detokenize(capi_env* env) {
  arn_model* model = NULL;
  int32_t ids[8] = {0};
  size_t count = 0, bytes = 0, again = 0;
  char text[64];
  arn_model_info info = ARN_MODEL_INFO_INIT;
  if (open_text(env, &model) != 0) return 1;
  CHECK_STATUS(ARN_OK, arn_model_get_info(model, &info));
  CHECK_STATUS(ARN_OK, arn_tokenize(model, "a fox", 5, 0, NULL, 0, ids, 7, &count));
  CHECK_STATUS(ARN_BUFFER_TOO_SMALL, arn_detokenize(model, ids, count, 0, NULL, 0, &bytes));
  CHECK(bytes == 5);
  text[5] = '#';
  CHECK_STATUS(ARN_OK, arn_detokenize(model, ids, count, 0, text, 5, &again));
  CHECK(again == 5 && memcmp(text, "a fox#", 6) == 0);
  CHECK_STATUS(ARN_BUFFER_TOO_SMALL, arn_detokenize(model, ids, count, 0, text, 4, &again));
  CHECK(again == 5);

  /* An end token shows, or does not. */
  CHECK(info.n_eos_ids > 0);
  ids[count] = (int32_t)info.eos_ids[0];
  CHECK_STATUS(ARN_OK, arn_detokenize(model, ids, count + 1, ARN_DETOKENIZE_SKIP_SPECIAL, text,
                                      sizeof text, &bytes));
  CHECK(bytes == 5);
  CHECK_STATUS(ARN_OK, arn_detokenize(model, ids, count + 1, 0, text, sizeof text, &bytes));
  CHECK(bytes > 5);

  ids[0] = (int32_t)info.vocab;
  CHECK_STATUS(ARN_BAD_TOKEN, arn_detokenize(model, ids, 1, 0, text, sizeof text, &bytes));
  CHECK(bytes == 0);
  ids[0] = -1;
  CHECK_STATUS(ARN_BAD_TOKEN, arn_detokenize(model, ids, 1, 0, text, sizeof text, &bytes));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_detokenize(NULL, ids, 1, 0, text, sizeof text, &bytes));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_detokenize(model, NULL, 1, 0, text, sizeof text, &bytes));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_detokenize(model, ids, 1, 0, NULL, 3, &bytes));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_detokenize(model, ids, 1, 2, text, sizeof text, &bytes));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_detokenize(model, ids, 1, 0, text, sizeof text, NULL));
  CHECK_STATUS(ARN_OK, arn_detokenize(model, NULL, 0, 0, text, sizeof text, &bytes));
  CHECK(bytes == 0);
  arn_model_close(model);
  return 0;
}

int capi_token_text(capi_env* env) {
  arn_model* model = NULL;
  const char* text = NULL;
  size_t bytes = 0, count = 0;
  int32_t id = -1;
  arn_model_info info = ARN_MODEL_INFO_INIT;
  if (open_text(env, &model) != 0) return 1;
  CHECK_STATUS(ARN_OK, arn_model_get_info(model, &info));
  CHECK_STATUS(ARN_OK,
               arn_tokenize(model, "a", 1, ARN_TOKENIZE_NO_SPECIAL, NULL, 0, &id, 1, &count));
  CHECK_STATUS(ARN_OK, arn_token_text(model, id, &text, &bytes));
  CHECK(bytes == 1 && text[0] == 'a');
  CHECK_STATUS(ARN_BAD_TOKEN, arn_token_text(model, -1, &text, &bytes));
  CHECK(text == NULL && bytes == 0);
  CHECK_STATUS(ARN_BAD_TOKEN, arn_token_text(model, (int32_t)info.vocab, &text, &bytes));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_token_text(NULL, 0, &text, &bytes));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_token_text(model, 0, NULL, &bytes));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_token_text(model, 0, &text, NULL));
  arn_model_close(model);
  return 0;
}

typedef struct transcript {
  char text[4096];
  size_t bytes;
} transcript;

static int32_t on_token(void* user, int32_t id, const char* text, size_t text_bytes) {
  transcript* t = user;
  (void)id;
  if (t->bytes + text_bytes < sizeof t->text) {
    memcpy(t->text + t->bytes, text, text_bytes);
    t->bytes += text_bytes;
    t->text[t->bytes] = '\0';
  }
  return 0;
}

static int generate(capi_env* env, arn_session* session, const arn_stop_string* stops, size_t n,
                    transcript* t, arn_generate_result* result) {
  const char kPrompt[] = "Once upon a time, there was";
  int32_t ids[64];
  size_t count = 0;
  arn_generate_options options = ARN_GENERATE_OPTIONS_INIT;
  t->bytes = 0;
  t->text[0] = '\0';
  options.max_tokens = 40;
  options.callback = on_token;
  options.user = t;
  options.stops = stops;
  options.n_stops = n;
  arn_model* model = NULL;
  if (open_text(env, &model) != 0) return 1;
  CHECK_STATUS(ARN_OK,
               arn_tokenize(model, kPrompt, sizeof kPrompt - 1, 0, NULL, 0, ids, 64, &count));
  arn_model_close(model);
  CHECK_STATUS(ARN_OK, arn_session_reset(session));
  CHECK_STATUS(ARN_OK, arn_session_prefill(session, ids, count));
  CHECK_STATUS(ARN_OK, arn_session_generate(session, &options, result));
  return 0;
}

int capi_stop_strings(capi_env* env) {
  arn_model* model = NULL;
  arn_session* session = NULL;
  transcript whole, cut;
  arn_generate_result result = ARN_GENERATE_RESULT_INIT;
  if (open_text(env, &model) != 0) return 1;
  CHECK_STATUS(ARN_OK, arn_session_create(model, NULL, NULL, 0, NULL, 0, &session));
  if (generate(env, session, NULL, 0, &whole, &result) != 0) return 1;
  CHECK(whole.bytes > 40);
  /* A piece from the middle of the text, that begins and ends inside tokens. */
  const size_t at = 17, length = 9;
  const char* first = strstr(whole.text, whole.text + at);
  CHECK(first != NULL);
  char piece[10] = {0};
  memcpy(piece, whole.text + at, length);
  const arn_stop_string stops[2] = {{"no such text", 12}, {piece, length}};
  if (generate(env, session, stops, 2, &cut, &result) != 0) return 1;
  CHECK(result.finish == ARN_FINISH_STOP);
  CHECK(strncmp(cut.text, whole.text, cut.bytes) == 0);
  CHECK(strstr(whole.text, piece) == whole.text + cut.bytes);
  const arn_stop_string empty = {"", 0};
  arn_generate_options options = ARN_GENERATE_OPTIONS_INIT;
  options.stops = &empty;
  options.n_stops = 1;
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_generate(session, &options, &result));
  static const char long_stop[300] = "long";
  const arn_stop_string too_long = {long_stop, 257};
  options.stops = &too_long;
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_generate(session, &options, &result));
  arn_session_destroy(session);
  arn_model_close(model);
  return 0;
}

int capi_without_tokenizer(capi_env* env) {
  arn_model* model = NULL;
  const char* text = NULL;
  size_t n = 0;
  int32_t id = 1;
  char buffer[8];
  CHECK_STATUS(ARN_OK, arn_model_open(env->path, NULL, NULL, 0, &model));
  CHECK_STATUS(ARN_UNSUPPORTED, arn_tokenize(model, "a", 1, 0, NULL, 0, &id, 1, &n));
  CHECK_STATUS(ARN_UNSUPPORTED, arn_detokenize(model, &id, 1, 0, buffer, sizeof buffer, &n));
  CHECK_STATUS(ARN_UNSUPPORTED, arn_token_text(model, 1, &text, &n));
  CHECK(arn_tokenize_scratch_bytes(model, 100) == 0);
  arn_model_close(model);
  return 0;
}
