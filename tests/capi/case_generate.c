/* arn_session_generate: how it ends, and how it is ended. */
#define _POSIX_C_SOURCE 200809L

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "tests/capi/capi_case.h"

typedef struct fixture {
  arn_model* model;
  arn_session* session;
} fixture;

/* What a callback saw, and what it is to do. */
typedef struct record {
  int32_t ids[256];
  int n;
  int calls;
  int stop_after;           /* > 0: end at this token */
  arn_session* cancel_from; /* cancels it at each call */
  atomic_int* started;      /* set at each call */
} record;

static int32_t on_token(void* user, int32_t id, const char* text, size_t text_bytes) {
  record* r = user;
  (void)text;
  (void)text_bytes;
  ++r->calls;
  if (id >= 0 && r->n < 256) r->ids[r->n++] = id;
  if (r->cancel_from != NULL) arn_session_cancel(r->cancel_from);
  if (r->started != NULL) atomic_store(r->started, 1);
  return r->stop_after > 0 && r->n >= r->stop_after;
}

static int begin(capi_env* env, const arn_session_options* options, fixture* f) {
  const int32_t prompt[5] = {3, 1, 4, 1, 5};
  CHECK_STATUS(ARN_OK, arn_model_open(env->path, NULL, NULL, 0, &f->model));
  CHECK_STATUS(ARN_OK, arn_session_create(f->model, options, NULL, 0, NULL, 0, &f->session));
  CHECK_STATUS(ARN_OK, arn_session_prefill(f->session, prompt, 5));
  return 0;
}

static void end(fixture* f) {
  arn_session_destroy(f->session);
  arn_model_close(f->model);
}

int capi_generate(capi_env* env) {
  fixture f;
  record r = {0};
  int32_t by_hand[12];
  arn_generate_options options = ARN_GENERATE_OPTIONS_INIT;
  arn_generate_result result = ARN_GENERATE_RESULT_INIT;
  if (begin(env, NULL, &f) != 0) return 1;
  for (int i = 0; i < 12; ++i) CHECK_STATUS(ARN_OK, arn_session_decode(f.session, &by_hand[i]));
  end(&f);
  if (begin(env, NULL, &f) != 0) return 1;
  options.max_tokens = 5;
  options.ignore_eos = 1;
  options.callback = on_token;
  options.user = &r;
  CHECK_STATUS(ARN_OK, arn_session_generate(f.session, &options, &result));
  CHECK(result.n_tokens == 5 && result.finish == ARN_FINISH_LENGTH && r.n == 5);
  CHECK(arn_session_length(f.session) == 10);
  /* It goes on from where it ended. */
  options.max_tokens = 7;
  CHECK_STATUS(ARN_OK, arn_session_generate(f.session, &options, &result));
  CHECK(result.n_tokens == 7 && r.n == 12);
  CHECK(memcmp(r.ids, by_hand, sizeof by_hand) == 0);
  /* Without a callback, and without a place for the result. */
  options.callback = NULL;
  CHECK_STATUS(ARN_OK, arn_session_generate(f.session, &options, NULL));
  CHECK(arn_session_length(f.session) == 24);
  end(&f);
  return 0;
}

int capi_generate_errors(capi_env* env) {
  fixture f;
  arn_generate_options options = ARN_GENERATE_OPTIONS_INIT;
  arn_generate_result result = ARN_GENERATE_RESULT_INIT;
  arn_stop_string stops[17];
  if (begin(env, NULL, &f) != 0) return 1;
  for (int i = 0; i < 17; ++i) stops[i] = (arn_stop_string){"x", 1};
  options.max_tokens = 2;
  options.ignore_eos = 2;
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_generate(f.session, &options, &result));
  CHECK(strstr(arn_session_last_error(f.session), "ignore_eos") != NULL);
  options.ignore_eos = 0;
  options.n_extra_eos_ids = 1;
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_generate(f.session, &options, &result));
  options.n_extra_eos_ids = 0;
  options.n_stops = 1;
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_generate(f.session, &options, &result));
  options.stops = stops;
  CHECK_STATUS(ARN_UNSUPPORTED, arn_session_generate(f.session, &options, &result));
  options.n_stops = 17;
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_generate(f.session, &options, &result));
  options.n_stops = 1;
  stops[0].text = NULL;
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_generate(f.session, &options, &result));
  options = (arn_generate_options)ARN_GENERATE_OPTIONS_INIT;
  options.struct_size = 4;
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_generate(f.session, &options, &result));
  CHECK(arn_session_length(f.session) == 5);
  CHECK_STATUS(ARN_OK, arn_session_reset(f.session));
  options.struct_size = sizeof options;
  CHECK_STATUS(ARN_BAD_STATE, arn_session_generate(f.session, &options, &result));
  end(&f);
  return 0;
}

int capi_generate_ends(capi_env* env) {
  fixture f;
  record r = {0};
  arn_session_options session_options = ARN_SESSION_OPTIONS_INIT;
  arn_generate_options options = ARN_GENERATE_OPTIONS_INIT;
  arn_generate_result result = ARN_GENERATE_RESULT_INIT;
  int32_t greedy[8];
  session_options.context_tokens = 16;
  options.callback = on_token;
  options.user = &r;

  if (begin(env, &session_options, &f) != 0) return 1;
  for (int i = 0; i < 8; ++i) CHECK_STATUS(ARN_OK, arn_session_decode(f.session, &greedy[i]));
  end(&f);

  /* A full context. */
  if (begin(env, &session_options, &f) != 0) return 1;
  options.ignore_eos = 1;
  CHECK_STATUS(ARN_OK, arn_session_generate(f.session, &options, &result));
  CHECK(result.finish == ARN_FINISH_CONTEXT && result.n_tokens == 11 && r.n == 11);
  CHECK(arn_session_length(f.session) == 16);
  end(&f);

  /* An end token of the caller's: neither counted nor in the sequence, and the callback does not
   * see it. Its first occurrence ends. */
  int first = 3;
  for (int i = 0; i < 3; ++i) {
    if (greedy[i] == greedy[3] && i < first) first = i;
  }
  if (begin(env, &session_options, &f) != 0) return 1;
  r.n = 0;
  options.ignore_eos = 0;
  options.extra_eos_ids = &greedy[3];
  options.n_extra_eos_ids = 1;
  CHECK_STATUS(ARN_OK, arn_session_generate(f.session, &options, &result));
  CHECK(result.finish == ARN_FINISH_EOS && (int)result.n_tokens <= first && r.n <= first);
  CHECK(arn_session_length(f.session) == 5u + result.n_tokens);
  end(&f);

  /* The callback. The token at which it ends is counted. */
  if (begin(env, &session_options, &f) != 0) return 1;
  r.n = 0;
  r.stop_after = 4;
  options.ignore_eos = 1;
  options.n_extra_eos_ids = 0;
  CHECK_STATUS(ARN_OK, arn_session_generate(f.session, &options, &result));
  CHECK(result.finish == ARN_FINISH_CALLBACK && result.n_tokens == 4 && r.n == 4);
  CHECK(arn_session_length(f.session) == 9);
  end(&f);
  return 0;
}

int capi_cancel_from_callback(capi_env* env) {
  fixture f;
  record r = {0};
  arn_generate_options options = ARN_GENERATE_OPTIONS_INIT;
  arn_generate_result result = ARN_GENERATE_RESULT_INIT;
  if (begin(env, NULL, &f) != 0) return 1;
  r.cancel_from = f.session;
  options.ignore_eos = 1;
  options.callback = on_token;
  options.user = &r;
  CHECK_STATUS(ARN_CANCELLED, arn_session_generate(f.session, &options, &result));
  CHECK(result.finish == ARN_FINISH_CANCELLED && r.n == 1);
  /* Every token that is counted is in the sequence, and no other. */
  CHECK(arn_session_length(f.session) == 5u + result.n_tokens);
  /* The session can be used again. */
  CHECK_STATUS(ARN_OK, arn_session_reset(f.session));
  CHECK_STATUS(ARN_OK, arn_session_prefill(f.session, r.ids, 1));
  options.callback = NULL;
  options.max_tokens = 3;
  CHECK_STATUS(ARN_OK, arn_session_generate(f.session, &options, &result));
  CHECK(result.n_tokens == 3);
  end(&f);
  return 0;
}

typedef struct canceller {
  arn_session* session;
  atomic_int* started;
} canceller;

static void* cancel_when_started(void* user) {
  canceller* c = user;
  const struct timespec pause = {0, 100000};
  while (atomic_load(c->started) == 0) nanosleep(&pause, NULL);
  arn_session_cancel(c->session);
  return NULL;
}

int capi_cancel_from_thread(capi_env* env) {
  fixture f;
  record r = {0};
  atomic_int started;
  pthread_t thread;
  arn_generate_options options = ARN_GENERATE_OPTIONS_INIT;
  arn_generate_result result = ARN_GENERATE_RESULT_INIT;
  arn_status status = ARN_OK;
  if (begin(env, NULL, &f) != 0) return 1;
  atomic_init(&started, 0);
  canceller c = {f.session, &started};
  r.started = &started;
  options.ignore_eos = 1;
  options.callback = on_token;
  options.user = &r;
  CHECK(pthread_create(&thread, NULL, cancel_when_started, &c) == 0);
  /* The context would be full after 251 tokens: begun again until the other thread was heard. */
  while (status == ARN_OK) {
    const int32_t first = 7;
    status = arn_session_generate(f.session, &options, &result);
    if (status != ARN_OK) break;
    CHECK_STATUS(ARN_OK, arn_session_reset(f.session));
    status = arn_session_prefill(f.session, &first, 1);
  }
  pthread_join(thread, NULL);
  CHECK_STATUS(ARN_CANCELLED, status);
  CHECK(arn_session_last_error(f.session)[0] != '\0');
  end(&f);
  return 0;
}

int capi_cancel_is_remembered(capi_env* env) {
  fixture f;
  const int32_t more[2] = {1, 2};
  int32_t id = -1;
  if (begin(env, NULL, &f) != 0) return 1;
  arn_session_cancel(f.session);
  CHECK_STATUS(ARN_CANCELLED, arn_session_prefill(f.session, more, 2));
  CHECK(arn_session_length(f.session) == 5);
  CHECK_STATUS(ARN_OK, arn_session_prefill(f.session, more, 2));
  arn_session_cancel(f.session);
  CHECK_STATUS(ARN_CANCELLED, arn_session_decode(f.session, &id));
  CHECK(arn_session_length(f.session) == 7);
  end(&f);
  return 0;
}
