/* arn_session_generate: finish reasons and cancellation. */
#define _POSIX_C_SOURCE 200809L

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "arenite/observe.h"
#include "arenite/profile.h"
#include "tests/capi/capi_case.h"

typedef struct fixture {
  arn_model* model;
  arn_session* session;
} fixture;

/* Records callback calls and controls the callback. */
typedef struct record {
  int32_t ids[256];
  int n;
  int calls;
  int calls_failed;
  int stop_after;           /* > 0: stop at this token */
  arn_session* cancel_from; /* cancels this session in each call */
  arn_session* call_from;   /* calls this session in each call */
  atomic_int* started;      /* set at each call */
} record;

/* Calls every session function that is allowed or refused in a callback. Returns non-zero if one
 * behaves otherwise. */
static int call_session(arn_session* s) {
  const uint32_t length = arn_session_length(s);
  const uint32_t zero = 0;
  const int32_t one = 1;
  const int32_t* ids = NULL;
  const float* logits = NULL;
  float floats[64];
  int32_t id = -1;
  uint32_t count = 0;
  uint64_t bytes = 0;
  size_t n = 0;
  static char room[1 << 20];
  arn_session_stats_data stats = ARN_SESSION_STATS_INIT;
  arn_backend_info backend = ARN_BACKEND_INFO_INIT;
  arn_kv_layer_info layer = ARN_KV_LAYER_INFO_INIT;
  arn_session_cpus_data cpus = ARN_SESSION_CPUS_INIT;
  arn_sampling sampling = ARN_SAMPLING_INIT;
  const arn_status looks[] = {
      arn_session_logits(s, &logits),     arn_session_tokens(s, &ids, &count),
      arn_session_stats(s, &stats),       arn_session_backend(s, &backend),
      arn_session_kv_layer(s, 0, &layer), arn_session_cpus(s, &cpus),
      arn_session_save_bytes(s, &bytes),
  };
  const arn_status changes[] = {
      arn_session_prefill(s, &one, 1),
      arn_session_set_prefill_callback(s, NULL, NULL),
      arn_session_prefill_logits(s, &one, 1, &logits),
      arn_session_decode(s, &id),
      arn_session_sample(s, &id),
      arn_session_generate(s, NULL, NULL),
      arn_session_beam_search(s, NULL, NULL),
      arn_session_beam(s, 0, &id, 1, &n, NULL),
      arn_session_set_sampling(s, &sampling),
      arn_session_reset(s),
      arn_session_rewind(s, 0),
      arn_session_mark(s),
      arn_session_follow(s, &one, 1, NULL),
      arn_session_use_prefix(s),
      arn_session_select(s, 0),
      arn_session_fork(s, 0, 0),
      arn_session_step(s, &zero, &one, 1),
      arn_session_decode_batch(s, &zero, 1, &id),
      arn_session_encode_ids(s, &one, 1),
      arn_session_encode_features(s, floats, 1, 1),
      arn_session_trim(s, NULL),
      arn_session_read_kv(s, 0, 0, 1, floats, NULL),
      arn_session_write_kv(s, &one, 1, &logits, &logits),
      arn_session_save_memory(s, room, sizeof room, &bytes),
      arn_session_save(s, "of_a_callback.state"),
      arn_session_restore(s, "of_a_callback.state", NULL),
      arn_session_restore_memory(s, room, sizeof room, NULL),
      arn_session_reset_stats(s),
      arn_session_profile_start(s, room, sizeof room),
      arn_session_profile_stop(s),
      arn_session_observe_matmuls(s, NULL, NULL),
  };
  for (size_t i = 0; i < sizeof looks / sizeof *looks; ++i) {
    if (looks[i] != ARN_OK) return 1;
  }
  for (size_t i = 0; i < sizeof changes / sizeof *changes; ++i) {
    if (changes[i] != ARN_BAD_STATE) return 1;
  }
  if (strstr(arn_session_last_error(s), "callback") == NULL) return 1;
  /* A cleared cancel has no effect. */
  arn_session_cancel(s);
  arn_session_clear_cancel(s);
  return arn_session_length(s) == length && arn_session_selected(s) == 0 && count == length &&
                 arn_session_first_rewind_position(s) == 0
             ? 0
             : 1;
}

static int32_t on_token(void* user, int32_t id, const char* text, size_t text_bytes) {
  record* r = user;
  (void)text;
  (void)text_bytes;
  ++r->calls;
  if (id >= 0 && r->n < 256) r->ids[r->n++] = id;
  if (r->cancel_from != NULL) arn_session_cancel(r->cancel_from);
  if (r->call_from != NULL) r->calls_failed |= call_session(r->call_from);
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
  /* Continues from the end of the last call. */
  options.max_tokens = 7;
  CHECK_STATUS(ARN_OK, arn_session_generate(f.session, &options, &result));
  CHECK(result.n_tokens == 7 && r.n == 12);
  CHECK(memcmp(r.ids, by_hand, sizeof by_hand) == 0);
  /* Works without a callback and without a result. */
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

  /* Stops at a full context. */
  if (begin(env, &session_options, &f) != 0) return 1;
  options.ignore_eos = 1;
  CHECK_STATUS(ARN_OK, arn_session_generate(f.session, &options, &result));
  CHECK(result.finish == ARN_FINISH_CONTEXT && result.n_tokens == 12 && r.n == 12);
  CHECK(arn_session_length(f.session) == 16);
  end(&f);

  /* Stops at the first occurrence of the caller's stop token id, which is not counted, not in the
   * sequence and not passed to the callback. */
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

  /* Stops when the callback returns so. The last token counts. */
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

enum { N_TOP = 3, N_ENTRIES = 1 + N_TOP };

/* Compares the rows that generate has written with what the callback could ask for. */
typedef struct logprob_check {
  arn_session* session;
  const arn_token_logprob* rows;
  uint32_t n_rows;
  uint32_t n; /* tokens so far */
  int failed;
} logprob_check;

static int32_t compare_logprobs(void* user, int32_t id, const char* text, size_t text_bytes) {
  logprob_check* c = user;
  arn_token_logprob top[N_TOP];
  float own = 0;
  (void)text;
  (void)text_bytes;
  if (id < 0) return 0;
  c->failed |= arn_session_logprobs(c->session, id, N_TOP, top, &own) != ARN_OK;
  if (c->n < c->n_rows) {
    const arn_token_logprob* row = c->rows + c->n * N_ENTRIES;
    c->failed |= row[0].id != id || row[0].logprob != own;
    c->failed |= memcmp(row + 1, top, sizeof top) != 0;
  }
  ++c->n;
  return 0;
}

int capi_generate_logprobs(capi_env* env) {
  fixture f;
  arn_token_logprob rows[6 * N_ENTRIES];
  arn_generate_options options = ARN_GENERATE_OPTIONS_INIT;
  arn_generate_result result = ARN_GENERATE_RESULT_INIT;
  if (begin(env, NULL, &f) != 0) return 1;
  logprob_check c = {f.session, rows, 6, 0, 0};
  options.ignore_eos = 1;
  options.max_tokens = 6;
  options.logprobs = rows;
  options.logprobs_capacity = 6 * N_ENTRIES;
  options.n_top_logprobs = N_TOP;
  options.callback = compare_logprobs;
  options.user = &c;
  CHECK_STATUS(ARN_OK, arn_session_generate(f.session, &options, &result));
  CHECK(result.n_tokens == 6 && result.n_logprobs == 6 && c.n == 6 && !c.failed);
  /* Room for two whole tokens: the entries behind them are not written. */
  memset(rows, 0x55, sizeof rows);
  c.n = 0;
  c.n_rows = 2;
  options.logprobs_capacity = 3 * N_ENTRIES - 1;
  CHECK_STATUS(ARN_OK, arn_session_generate(f.session, &options, &result));
  CHECK(result.n_tokens == 6 && result.n_logprobs == 2 && !c.failed);
  CHECK(rows[2 * N_ENTRIES].id == 0x55555555);
  /* A token that was shown, but whose run was cancelled, has none: the next call shows it again. */
  record r = {0};
  r.cancel_from = f.session;
  options.logprobs_capacity = 6 * N_ENTRIES;
  options.callback = on_token;
  options.user = &r;
  CHECK_STATUS(ARN_CANCELLED, arn_session_generate(f.session, &options, &result));
  CHECK(r.n == 1 && result.n_logprobs == result.n_tokens);
  options.callback = NULL;
  options.n_top_logprobs = 62; /* the vocabulary has 61 */
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_generate(f.session, &options, &result));
  CHECK(strstr(arn_session_last_error(f.session), "n_top_logprobs is 62") != NULL);
  options.logprobs = NULL;
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_generate(f.session, &options, &result));
  CHECK(strstr(arn_session_last_error(f.session), "logprobs is NULL") != NULL);
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
  /* The sequence contains exactly the counted tokens. */
  CHECK(arn_session_length(f.session) == 5u + result.n_tokens);
  /* The next call continues with the pending token. */
  r.cancel_from = NULL;
  options.max_tokens = 3;
  CHECK_STATUS(ARN_OK, arn_session_generate(f.session, &options, &result));
  CHECK(result.n_tokens == 3 && r.n == 4 && r.ids[1] == r.ids[0]);
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
  /* The context is full after 251 tokens: restart until the other thread has cancelled. */
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

/* A call from the session's own callback is refused and changes nothing: the text stays the same.
 */
int capi_calls_from_callback(capi_env* env) {
  fixture f;
  record plain = {0}, calling = {0};
  arn_generate_options options = ARN_GENERATE_OPTIONS_INIT;
  arn_generate_result result = ARN_GENERATE_RESULT_INIT;
  options.ignore_eos = 1;
  options.max_tokens = 6;
  options.callback = on_token;
  for (int i = 0; i < 2; ++i) {
    record* r = i == 0 ? &plain : &calling;
    if (begin(env, NULL, &f) != 0) return 1;
    if (i == 1) r->call_from = f.session;
    options.user = r;
    CHECK_STATUS(ARN_OK, arn_session_generate(f.session, &options, &result));
    CHECK(result.n_tokens == 6 && r->n == 6 && arn_session_length(f.session) == 11);
    /* All calls work again afterwards. */
    CHECK_STATUS(ARN_OK, arn_session_reset(f.session));
    end(&f);
  }
  CHECK(calling.calls_failed == 0);
  CHECK(memcmp(plain.ids, calling.ids, sizeof plain.ids) == 0);
  return 0;
}

/* Without a running call, a cancel ends the next run. Only arn_session_clear_cancel revokes it. */
int capi_cancel_is_remembered(capi_env* env) {
  fixture f;
  const int32_t more[2] = {1, 2};
  int32_t id = -1, again = -1;
  if (begin(env, NULL, &f) != 0) return 1;
  arn_session_cancel(f.session);
  CHECK_STATUS(ARN_CANCELLED, arn_session_prefill(f.session, more, 2));
  CHECK(arn_session_length(f.session) == 5);
  CHECK_STATUS(ARN_OK, arn_session_prefill(f.session, more, 2));
  arn_session_cancel(f.session);
  CHECK_STATUS(ARN_CANCELLED, arn_session_decode(f.session, &id));
  CHECK(arn_session_length(f.session) == 7);
  /* The logits are intact, and the call continues from the same position. */
  CHECK_STATUS(ARN_OK, arn_session_sample(f.session, &id));
  CHECK_STATUS(ARN_OK, arn_session_decode(f.session, &again));
  CHECK(id == again && arn_session_length(f.session) == 8);
  arn_session_cancel(f.session);
  CHECK_STATUS(ARN_OK, arn_session_reset(f.session));
  CHECK_STATUS(ARN_CANCELLED, arn_session_prefill(f.session, more, 2));
  arn_session_cancel(f.session);
  arn_session_clear_cancel(f.session);
  CHECK_STATUS(ARN_OK, arn_session_prefill(f.session, more, 2));
  arn_session_clear_cancel(NULL);
  end(&f);
  return 0;
}
