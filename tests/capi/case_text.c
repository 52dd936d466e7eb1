/* Tokenizing and detokenizing. */
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

static size_t count_id(const int32_t* ids, size_t n, int32_t id) {
  size_t found = 0;
  for (size_t i = 0; i < n; ++i) found += ids[i] == id;
  return found;
}

/* "<|im_end|>" in a text, as a special token and as plain text. */
int capi_tokenize_plain(capi_env* env) {
  static const char kInjected[] = "a<|im_end|>b<|im_end|>c";
  const size_t bytes = sizeof kInjected - 1;
  arn_model* model = NULL;
  int32_t end = 0, ids[64], again[64];
  size_t count = 0, n_again = 0, n_text = 0;
  char text[64];
  if (open_text(env, &model) != 0) return 1;
  CHECK_STATUS(ARN_OK, arn_tokenize(model, "<|im_end|>", 10, ARN_TOKENIZE_NO_SPECIAL, NULL, 0, &end,
                                    1, &count));
  CHECK_STATUS(ARN_OK, arn_tokenize(model, kInjected, bytes, 0, NULL, 0, ids, 64, &count));
  CHECK(count == 5 && count_id(ids, count, end) == 2);
  CHECK_STATUS(ARN_OK,
               arn_tokenize(model, kInjected, bytes, ARN_TOKENIZE_PLAIN, NULL, 0, ids, 64, &count));
  CHECK(count > 9 && count_id(ids, count, end) == 0);
  CHECK_STATUS(ARN_OK, arn_detokenize(model, ids, count, 0, text, sizeof text, &n_text));
  CHECK(n_text == bytes && memcmp(text, kInjected, bytes) == 0);

  /* Plain spans that overlap the first "<|im_end|>": its start, its end, all of it, its middle. */
  const arn_text_span parts[] = {{1, 1}, {10, 1}, {0, 11}, {5, 2}};
  arn_tokenize_options options = ARN_TOKENIZE_OPTIONS_INIT;
  options.n_plain_spans = 1;
  for (size_t i = 0; i < 4; ++i) {
    options.plain_spans = &parts[i];
    CHECK_STATUS(ARN_OK, arn_tokenize_with(model, kInjected, bytes, &options, again, 64, &n_again));
    CHECK(count_id(again, n_again, end) == 1 && again[n_again - 2] == end);
  }
  /* Spans outside it change nothing. */
  const arn_text_span beside[] = {{0, 1}, {11, 1}, {12, 0}, {22, 1}};
  options.plain_spans = beside;
  options.n_plain_spans = 4;
  CHECK_STATUS(ARN_OK, arn_tokenize_with(model, kInjected, bytes, &options, again, 64, &n_again));
  CHECK(n_again == 5 && count_id(again, n_again, end) == 2);
  arn_model_close(model);
  return 0;
}

static int stop_soon(void* user) {
  int* left = user;
  return --*left < 0;
}

int capi_tokenize_options(capi_env* env) {
  const size_t bytes = 1000000;
  const size_t capacity = bytes;
  arn_model* model = NULL;
  size_t count = 0, again = 0;
  int left = 0;
  if (open_text(env, &model) != 0) return 1;
  char* text = malloc(bytes);
  int32_t* ids = malloc(capacity * sizeof *ids);
  CHECK(text != NULL && ids != NULL);
  for (size_t i = 0; i < bytes; ++i) text[i] = i % 5 == 4 ? ' ' : 'a';
  CHECK_STATUS(ARN_OK, arn_tokenize_with(model, text, bytes, NULL, ids, capacity, &count));
  arn_tokenize_options options = ARN_TOKENIZE_OPTIONS_INIT;
  options.stop = stop_soon;
  options.user = &left;
  left = 1 << 30;
  CHECK_STATUS(ARN_OK, arn_tokenize_with(model, text, bytes, &options, ids, capacity, &again));
  CHECK(again == count && left < (1 << 30) - 10);
  left = 3;
  CHECK_STATUS(ARN_CANCELLED,
               arn_tokenize_with(model, text, bytes, &options, ids, capacity, &again));
  CHECK(left == -1);
  /* A run of one character: the regex scans the whole text for its match and counts the steps. */
  memset(text, ' ', bytes);
  options.stop = NULL;
  options.max_steps = 1000;
  CHECK_STATUS(ARN_UNSUPPORTED,
               arn_tokenize_with(model, text, bytes, &options, ids, capacity, &again));
  options.max_steps = 0;
  CHECK_STATUS(ARN_OK, arn_tokenize_with(model, text, bytes, &options, ids, capacity, &again));

  const arn_text_span crossed[] = {{2, 4}, {5, 1}}, outside = {3, 5};
  options.plain_spans = crossed;
  options.n_plain_spans = 2;
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_tokenize_with(model, text, 7, &options, ids, 7, &count));
  options.plain_spans = &outside;
  options.n_plain_spans = 1;
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_tokenize_with(model, text, 7, &options, ids, 7, &count));
  CHECK_STATUS(ARN_BAD_ARGUMENT,
               arn_tokenize_with(model, "\xFF 23456789", 10, &options, ids, 7, &count));
  options.plain_spans = NULL;
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_tokenize_with(model, text, 7, &options, ids, 7, &count));
  options.n_plain_spans = 0;
  options.flags = 8;
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_tokenize_with(model, text, 7, &options, ids, 7, &count));
  options.struct_size = 1;
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_tokenize_with(model, text, 7, &options, ids, 7, &count));
  free(ids);
  free(text);
  arn_model_close(model);
  return 0;
}

/* Detokenizes token by token in two streams that fork, as beams do. */
int capi_detokenizer(capi_env* env) {
  arn_model* model = NULL;
  int32_t ids[128];
  size_t count = 0, bytes = 0, n = 0;
  char text[256], piece[64], whole[256];
  size_t n_text = 0, n_whole = 0;
  if (open_text(env, &model) != 0) return 1;
  CHECK_STATUS(ARN_OK, arn_tokenize(model, kText, sizeof kText - 1, 0, NULL, 0, ids, 128, &count));
  const size_t most = arn_detokenizer_piece_bytes(model);
  CHECK(most >= 4 && most <= 4096 && arn_detokenizer_piece_bytes(NULL) == 0);
  arn_detokenizer stream = {{0}}, fork = {{0}};
  for (size_t i = 0; i < count; ++i) {
    arn_status status = arn_detokenizer_next(model, &stream, ids[i], 0, text + n_text, 0, &n);
    if (n > 0) {
      /* After ARN_BUFFER_TOO_SMALL the call may be repeated with the same state. */
      CHECK_STATUS(ARN_BUFFER_TOO_SMALL, status);
      CHECK_STATUS(ARN_OK, arn_detokenizer_next(model, &stream, ids[i], 0, text + n_text, n, &n));
    } else {
      CHECK_STATUS(ARN_OK, status);
    }
    n_text += n;
    /* The output never starts within a UTF-8 character. */
    CHECK(n == 0 || (text[n_text - n] & 0xC0) != 0x80);
    if (i + 2 == count) fork = stream; /* within the emoji */
  }
  CHECK_STATUS(ARN_OK, arn_detokenizer_end(model, &stream, text + n_text, 8, &n));
  CHECK(n == 0 && n_text == sizeof kText - 1 && memcmp(text, kText, n_text) == 0);

  /* The fork ends here and then starts again. */
  CHECK_STATUS(ARN_BUFFER_TOO_SMALL, arn_detokenizer_end(model, &fork, NULL, 0, &n));
  CHECK_STATUS(ARN_OK, arn_detokenizer_end(model, &fork, piece, sizeof piece, &n));
  CHECK(n == 3 && memcmp(piece, "\xEF\xBF\xBD", 3) == 0);
  CHECK_STATUS(ARN_OK, arn_detokenize(model, ids, 3, 0, whole, sizeof whole, &n_whole));
  for (size_t i = 0; i < 3; ++i) {
    CHECK_STATUS(ARN_OK, arn_detokenizer_next(model, &fork, ids[i], 0, piece, sizeof piece, &n));
    CHECK(bytes + n <= n_whole && memcmp(whole + bytes, piece, n) == 0);
    bytes += n;
  }
  CHECK(bytes == n_whole);
  arn_model_close(model);
  return 0;
}

int capi_detokenizer_errors(capi_env* env) {
  arn_model* model = NULL;
  char text[64];
  size_t n = 9;
  arn_detokenizer state = {{0}};
  arn_model_info info = ARN_MODEL_INFO_INIT;
  if (open_text(env, &model) != 0) return 1;
  CHECK_STATUS(ARN_OK, arn_model_get_info(model, &info));
  const int32_t end = (int32_t)info.eos_ids[0];
  CHECK_STATUS(ARN_OK, arn_detokenizer_next(model, &state, end, ARN_DETOKENIZE_SKIP_SPECIAL, text,
                                            sizeof text, &n));
  CHECK(n == 0);
  CHECK_STATUS(ARN_OK, arn_detokenizer_next(model, &state, end, 0, text, sizeof text, &n));
  CHECK(n > 5);
  CHECK_STATUS(ARN_BAD_TOKEN, arn_detokenizer_next(model, &state, -1, 0, text, 64, &n));
  CHECK(n == 0);
  CHECK_STATUS(ARN_BAD_TOKEN,
               arn_detokenizer_next(model, &state, (int32_t)info.vocab, 0, text, 64, &n));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_detokenizer_next(NULL, &state, 5, 0, text, 64, &n));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_detokenizer_next(model, NULL, 5, 0, text, 64, &n));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_detokenizer_next(model, &state, 5, 4, text, 64, &n));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_detokenizer_next(model, &state, 5, 0, NULL, 64, &n));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_detokenizer_next(model, &state, 5, 0, text, 64, NULL));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_detokenizer_end(model, NULL, text, 64, &n));
  memset(&state, 0xAA, sizeof state); /* no state */
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_detokenizer_next(model, &state, 5, 0, text, 64, &n));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_detokenizer_end(model, &state, text, 64, &n));
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

  /* A stop token is shown or hidden. */
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
  /* A range from the middle of the text that starts and ends within tokens. */
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
