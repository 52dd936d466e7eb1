/* Prefill, logits, decoding, sampling and statistics. */
#include <math.h>

#include "tests/capi/capi_case.h"

enum { kVocab = 61 };

typedef struct fixture {
  arn_model* model;
  arn_session* session;
} fixture;

static int begin(capi_env* env, const arn_session_options* options, fixture* f) {
  char error[256] = "";
  f->model = NULL;
  f->session = NULL;
  CHECK_STATUS(ARN_OK, arn_model_open(env->path, NULL, error, sizeof error, &f->model));
  CHECK_STATUS(ARN_OK,
               arn_session_create(f->model, options, NULL, 0, error, sizeof error, &f->session));
  return 0;
}

static void end(fixture* f) {
  arn_session_destroy(f->session);
  arn_model_close(f->model);
}

static int32_t argmax(const float* logits) {
  int32_t best = 0;
  for (int32_t i = 1; i < kVocab; ++i) {
    if (logits[i] > logits[best]) best = i;
  }
  return best;
}

typedef struct progress {
  uint64_t done[8];
  uint64_t total;
  int calls;
  uint64_t end_after; /* > 0: ends the call once this many tokens ran */
  arn_session* session;
  arn_status nested;
} progress;

static int32_t on_prefill(void* user, uint64_t done, uint64_t total) {
  progress* p = user;
  const int32_t one = 1;
  if (p->calls < 8) p->done[p->calls] = done;
  ++p->calls;
  p->total = total;
  p->nested = arn_session_prefill(p->session, &one, 1);
  return p->end_after > 0 && done >= p->end_after;
}

int capi_prefill_progress(capi_env* env) {
  fixture f;
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  const int32_t prompt[10] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3};
  progress p = {{0}, 0, 0, 0, NULL, ARN_OK};
  int32_t whole = -1, continued = -1;
  options.prefill_chunk = 4;
  if (begin(env, &options, &f) != 0) return 1;
  p.session = f.session;
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_set_prefill_callback(NULL, on_prefill, &p));
  CHECK_STATUS(ARN_OK, arn_session_set_prefill_callback(f.session, on_prefill, &p));
  CHECK_STATUS(ARN_OK, arn_session_prefill(f.session, prompt, 10));
  CHECK(p.calls == 3 && p.done[0] == 4 && p.done[1] == 8 && p.done[2] == 10 && p.total == 10);
  CHECK(p.nested == ARN_BAD_STATE && arn_session_length(f.session) == 10);
  CHECK_STATUS(ARN_OK, arn_session_sample(f.session, &whole));

  /* An ended call keeps its chunks, and goes on where it stopped. */
  CHECK_STATUS(ARN_OK, arn_session_reset(f.session));
  p.calls = 0;
  p.end_after = 5;
  CHECK_STATUS(ARN_CANCELLED, arn_session_follow(f.session, prompt, 10, NULL));
  CHECK(p.calls == 2 && arn_session_length(f.session) == 8);
  CHECK(strstr(arn_session_last_error(f.session), "8 of 10") != NULL);
  CHECK_STATUS(ARN_OK, arn_session_set_prefill_callback(f.session, NULL, NULL));
  CHECK_STATUS(ARN_OK, arn_session_follow(f.session, prompt, 10, NULL));
  CHECK(p.calls == 2);
  CHECK_STATUS(ARN_OK, arn_session_sample(f.session, &continued));
  CHECK(continued == whole);

  /* All tokens have run at the last call: there is nothing left to end. */
  p.end_after = 10;
  CHECK_STATUS(ARN_OK, arn_session_reset(f.session));
  CHECK_STATUS(ARN_OK, arn_session_set_prefill_callback(f.session, on_prefill, &p));
  CHECK_STATUS(ARN_OK, arn_session_prefill(f.session, prompt, 10));
  end(&f);
  return 0;
}

int capi_prefill_decode(capi_env* env) {
  fixture f;
  const int32_t prompt[5] = {3, 1, 4, 1, 5};
  int32_t sampled = -1, decoded = -1;
  if (begin(env, NULL, &f) != 0) return 1;
  CHECK(arn_session_length(f.session) == 0);
  CHECK(strcmp(arn_session_last_error(f.session), "") == 0);
  CHECK_STATUS(ARN_BAD_STATE, arn_session_decode(f.session, &decoded));
  CHECK_STATUS(ARN_BAD_STATE, arn_session_sample(f.session, &sampled));
  CHECK(arn_session_last_error(f.session)[0] != '\0');
  CHECK_STATUS(ARN_OK, arn_session_prefill(f.session, prompt, 5));
  CHECK(arn_session_length(f.session) == 5);
  CHECK(strcmp(arn_session_last_error(f.session), "") == 0);
  CHECK_STATUS(ARN_OK, arn_session_sample(f.session, &sampled));
  CHECK(arn_session_length(f.session) == 5);
  CHECK_STATUS(ARN_OK, arn_session_decode(f.session, &decoded));
  CHECK(sampled == decoded && arn_session_length(f.session) == 6);
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_decode(f.session, NULL));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_sample(f.session, NULL));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_prefill(f.session, NULL, 3));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_prefill(f.session, prompt, 0));
  CHECK(arn_session_length(f.session) == 6);
  uint32_t kept = 99;
  CHECK_STATUS(ARN_OK, arn_session_follow(f.session, prompt, 5, &kept));
  CHECK(kept == 4 && arn_session_length(f.session) == 5);
  CHECK_STATUS(ARN_OK, arn_session_follow(f.session, prompt, 5, NULL));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_follow(f.session, NULL, 5, &kept));
  CHECK(kept == 0);
  CHECK_STATUS(ARN_NOT_FOUND, arn_session_use_prefix(f.session));
  CHECK(strstr(arn_session_last_error(f.session), "no prefix") != NULL);
  CHECK(arn_session_length(f.session) == 5);
  end(&f);
  return 0;
}

int capi_logits(capi_env* env) {
  fixture f;
  const int32_t prompt[5] = {3, 1, 4, 1, 5};
  const float* logits = (const float*)prompt;
  int32_t id = -1;
  if (begin(env, NULL, &f) != 0) return 1;
  CHECK_STATUS(ARN_BAD_STATE, arn_session_logits(f.session, &logits));
  CHECK(logits == NULL && arn_session_last_error(f.session)[0] != '\0');
  CHECK_STATUS(ARN_OK, arn_session_prefill(f.session, prompt, 5));
  CHECK_STATUS(ARN_OK, arn_session_logits(f.session, &logits));
  for (int i = 0; i < kVocab; ++i) CHECK(isfinite(logits[i]));
  const int32_t best = argmax(logits);
  CHECK_STATUS(ARN_OK, arn_session_sample(f.session, &id));
  CHECK(id == best);
  CHECK_STATUS(ARN_OK, arn_session_decode(f.session, &id));
  CHECK(id == best);
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_logits(f.session, NULL));
  end(&f);
  return 0;
}

int capi_all_logits(capi_env* env) {
  fixture f;
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  const int32_t prompt[9] = {3, 1, 4, 1, 5, 9, 2, 6, 5};
  const float* all = NULL;
  const float* last = NULL;
  float kept[3 * kVocab];
  options.kv_type = ARN_KV_F32;
  options.prefill_chunk = 4;
  if (begin(env, &options, &f) != 0) return 1;
  CHECK_STATUS(ARN_BAD_STATE, arn_session_prefill_logits(f.session, prompt, 4, &all));
  CHECK(all == NULL);
  end(&f);

  options.all_logits = 1;
  if (begin(env, &options, &f) != 0) return 1;
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_prefill_logits(f.session, prompt, 5, &all));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_prefill_logits(f.session, prompt, 0, &all));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_prefill_logits(f.session, NULL, 2, &all));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_prefill_logits(f.session, prompt, 2, NULL));
  CHECK(arn_session_length(f.session) == 0);
  CHECK_STATUS(ARN_OK, arn_session_prefill_logits(f.session, prompt, 3, &all));
  memcpy(kept, all, sizeof kept);

  /* Row i equals the logits after token i when run token by token. */
  CHECK_STATUS(ARN_OK, arn_session_reset(f.session));
  for (int i = 0; i < 3; ++i) {
    CHECK_STATUS(ARN_OK, arn_session_prefill(f.session, prompt + i, 1));
    CHECK_STATUS(ARN_OK, arn_session_logits(f.session, &last));
    for (int k = 0; k < kVocab; ++k) CHECK(fabsf(last[k] - kept[i * kVocab + k]) < 1e-4f);
  }
  end(&f);
  return 0;
}

/* arn_session_read_kv writes exactly the reported shape, not one float more. */
int capi_read_kv(capi_env* env) {
  fixture f;
  arn_kv_layer_info info = ARN_KV_LAYER_INFO_INIT;
  const int32_t prompt[5] = {3, 1, 4, 1, 5};
  float keys[1024];
  if (begin(env, NULL, &f) != 0) return 1;
  CHECK_STATUS(ARN_OK, arn_session_prefill(f.session, prompt, 5));
  CHECK_STATUS(ARN_OK, arn_session_kv_layer(f.session, 0, &info));
  CHECK(info.kv_layer == 0 && info.first_position == 0);
  const size_t n = (size_t)info.n_kv_heads * 3 * info.head_dim;
  CHECK(n > 0 && n < 1024);
  for (size_t i = 0; i <= n; ++i) keys[i] = NAN;
  CHECK_STATUS(ARN_OK, arn_session_read_kv(f.session, 0, 2, 3, keys, NULL));
  for (size_t i = 0; i < n; ++i) CHECK(isfinite(keys[i]));
  CHECK(isnan(keys[n]));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_read_kv(f.session, 0, 3, 3, keys, NULL));
  CHECK(arn_session_last_error(f.session)[0] != '\0');
  end(&f);
  return 0;
}

int capi_bad_tokens(capi_env* env) {
  fixture f;
  const int32_t too_high[3] = {1, kVocab, 2};
  const int32_t negative[2] = {1, -1};
  const int32_t good[2] = {1, kVocab - 1};
  if (begin(env, NULL, &f) != 0) return 1;
  CHECK_STATUS(ARN_BAD_TOKEN, arn_session_prefill(f.session, too_high, 3));
  CHECK(strstr(arn_session_last_error(f.session), "61") != NULL);
  CHECK_STATUS(ARN_BAD_TOKEN, arn_session_prefill(f.session, negative, 2));
  CHECK(arn_session_length(f.session) == 0);
  CHECK_STATUS(ARN_OK, arn_session_prefill(f.session, good, 2));
  CHECK(arn_session_length(f.session) == 2);
  end(&f);
  return 0;
}

int capi_context_full(capi_env* env) {
  fixture f;
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  const int32_t prompt[9] = {3, 1, 4, 1, 5, 9, 2, 6, 5};
  int32_t id = -1, last = -1;
  options.context_tokens = 8;
  if (begin(env, &options, &f) != 0) return 1;
  CHECK_STATUS(ARN_CONTEXT_FULL, arn_session_prefill(f.session, prompt, 9));
  CHECK(arn_session_length(f.session) == 0);
  CHECK_STATUS(ARN_OK, arn_session_prefill(f.session, prompt, 7));
  CHECK_STATUS(ARN_CONTEXT_FULL, arn_session_prefill(f.session, prompt, 2));
  CHECK(arn_session_length(f.session) == 7);
  CHECK_STATUS(ARN_OK, arn_session_decode(f.session, &id));
  CHECK(arn_session_length(f.session) == 8);
  /* The token after a full context is sampled but not run. */
  CHECK_STATUS(ARN_OK, arn_session_sample(f.session, &last));
  CHECK_STATUS(ARN_OK, arn_session_decode(f.session, &id));
  CHECK(id == last && arn_session_length(f.session) == 8);
  id = -1;
  CHECK_STATUS(ARN_CONTEXT_FULL, arn_session_decode(f.session, &id));
  CHECK(id == -1 && arn_session_length(f.session) == 8);
  CHECK(arn_session_last_error(f.session)[0] != '\0');
  CHECK_STATUS(ARN_CONTEXT_FULL, arn_session_sample(f.session, &id));
  end(&f);
  return 0;
}

static int sample_many(capi_env* env, arn_session* session, const arn_sampling* sampling,
                       int32_t* ids, int n) {
  const int32_t prompt[3] = {7, 8, 9};
  CHECK_STATUS(ARN_OK, arn_session_reset(session));
  CHECK_STATUS(ARN_OK, arn_session_set_sampling(session, sampling));
  CHECK_STATUS(ARN_OK, arn_session_prefill(session, prompt, 3));
  for (int i = 0; i < n; ++i) CHECK_STATUS(ARN_OK, arn_session_decode(session, &ids[i]));
  return 0;
}

int capi_sampling(capi_env* env) {
  fixture f;
  arn_sampling sampling = ARN_SAMPLING_INIT;
  int32_t a[32], b[32];
  if (begin(env, NULL, &f) != 0) return 1;
  sampling.temperature = 1.5f;
  sampling.seed = 42;
  if (sample_many(env, f.session, &sampling, a, 32) != 0) return 1;
  if (sample_many(env, f.session, &sampling, b, 32) != 0) return 1;
  CHECK(memcmp(a, b, sizeof a) == 0);
  sampling.seed = 43;
  if (sample_many(env, f.session, &sampling, b, 32) != 0) return 1;
  CHECK(memcmp(a, b, sizeof a) != 0);
  const uint64_t one = arn_random_seed(), other = arn_random_seed();
  CHECK(one != other && (one | other) >> 53 == 0);
  /* top_k 1 is greedy at any temperature. */
  sampling.top_k = 1;
  if (sample_many(env, f.session, &sampling, a, 32) != 0) return 1;
  sampling = (arn_sampling)ARN_SAMPLING_INIT;
  if (sample_many(env, f.session, &sampling, b, 32) != 0) return 1;
  CHECK(memcmp(a, b, sizeof a) == 0);

  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_set_sampling(f.session, NULL));
  sampling.temperature = -1.0f;
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_set_sampling(f.session, &sampling));
  CHECK(strstr(arn_session_last_error(f.session), "temperature") != NULL);
  sampling.temperature = nanf("");
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_set_sampling(f.session, &sampling));
  sampling.temperature = 1.0f;
  sampling.top_p = 0.0f;
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_set_sampling(f.session, &sampling));
  CHECK(strstr(arn_session_last_error(f.session), "top_p") != NULL);
  sampling.top_p = 1.5f;
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_set_sampling(f.session, &sampling));
  sampling.top_p = 1.0f;
  sampling.min_p = 1.0f;
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_set_sampling(f.session, &sampling));
  CHECK(strstr(arn_session_last_error(f.session), "min_p") != NULL);
  sampling.min_p = 0.0f;
  sampling.struct_size = 0;
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_set_sampling(f.session, &sampling));
  end(&f);
  return 0;
}

int capi_reset(capi_env* env) {
  fixture f;
  const int32_t prompt[5] = {3, 1, 4, 1, 5};
  int32_t first[8], second[8];
  if (begin(env, NULL, &f) != 0) return 1;
  for (int round = 0; round < 2; ++round) {
    int32_t* ids = round == 0 ? first : second;
    CHECK_STATUS(ARN_OK, arn_session_reset(f.session));
    CHECK(arn_session_length(f.session) == 0);
    CHECK_STATUS(ARN_OK, arn_session_prefill(f.session, prompt, 5));
    for (int i = 0; i < 8; ++i) CHECK_STATUS(ARN_OK, arn_session_decode(f.session, &ids[i]));
  }
  CHECK(memcmp(first, second, sizeof first) == 0);
  CHECK_STATUS(ARN_OK, arn_session_reset(f.session));
  CHECK_STATUS(ARN_BAD_STATE, arn_session_decode(f.session, &first[0]));
  end(&f);
  return 0;
}

int capi_stats(capi_env* env) {
  fixture f;
  const int32_t prompt[5] = {3, 1, 4, 1, 5};
  arn_session_stats_data stats = ARN_SESSION_STATS_INIT;
  int32_t id = -1;
  if (begin(env, NULL, &f) != 0) return 1;
  CHECK_STATUS(ARN_OK, arn_session_stats(f.session, &stats));
  CHECK(stats.prefill_tokens == 0 && stats.decode_tokens == 0 && stats.kv_used_bytes == 0);
  CHECK(stats.kv_bytes_read_per_token == 0 && stats.weight_bytes_per_token > 0);
  CHECK_STATUS(ARN_OK, arn_session_prefill(f.session, prompt, 5));
  CHECK_STATUS(ARN_OK, arn_session_decode(f.session, &id));
  CHECK_STATUS(ARN_OK, arn_session_decode(f.session, &id));
  CHECK_STATUS(ARN_OK, arn_session_stats(f.session, &stats));
  CHECK(stats.prefill_tokens == 5 && stats.decode_tokens == 2);
  CHECK(stats.prefill_ns > 0 && stats.decode_ns > 0 && stats.create_ns > 0);
  CHECK(stats.kv_used_bytes > 0 && stats.kv_used_bytes <= stats.kv_capacity_bytes);
  CHECK(stats.kv_bytes_read_per_token > 0);
  CHECK_STATUS(ARN_OK, arn_session_reset_stats(f.session));
  CHECK_STATUS(ARN_OK, arn_session_stats(f.session, &stats));
  CHECK(stats.prefill_tokens == 0 && stats.prefill_ns == 0 && stats.decode_tokens == 0);
  CHECK(arn_session_length(f.session) == 7);
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_stats(f.session, NULL));
  stats.struct_size = 1;
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_stats(f.session, &stats));
  end(&f);
  return 0;
}

/* Two sessions on one model are independent and may use different options. */
int capi_two_sessions(capi_env* env) {
  fixture f;
  arn_session* other = NULL;
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  const int32_t prompt[5] = {3, 1, 4, 1, 5}, noise[2] = {60, 59};
  int32_t alone[6], beside[6], id = -1;
  if (begin(env, NULL, &f) != 0) return 1;
  CHECK_STATUS(ARN_OK, arn_session_prefill(f.session, prompt, 5));
  for (int i = 0; i < 6; ++i) CHECK_STATUS(ARN_OK, arn_session_decode(f.session, &alone[i]));
  options.backend = ARN_BACKEND_REFERENCE;
  options.kv_type = ARN_KV_F16;
  CHECK_STATUS(ARN_OK, arn_session_create(f.model, &options, NULL, 0, NULL, 0, &other));
  CHECK_STATUS(ARN_OK, arn_session_reset(f.session));
  CHECK_STATUS(ARN_OK, arn_session_prefill(other, noise, 2));
  CHECK_STATUS(ARN_OK, arn_session_prefill(f.session, prompt, 5));
  for (int i = 0; i < 6; ++i) {
    CHECK_STATUS(ARN_OK, arn_session_decode(f.session, &beside[i]));
    CHECK_STATUS(ARN_OK, arn_session_decode(other, &id));
  }
  CHECK(memcmp(alone, beside, sizeof alone) == 0);
  CHECK(arn_session_length(other) == 8);
  arn_session_destroy(other);
  end(&f);
  return 0;
}

int capi_null_session(capi_env* env) {
  const int32_t id_in[1] = {1};
  int32_t id = 0;
  const float* logits = NULL;
  arn_sampling sampling = ARN_SAMPLING_INIT;
  arn_session_stats_data stats = ARN_SESSION_STATS_INIT;
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_prefill(NULL, id_in, 1));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_prefill_logits(NULL, id_in, 1, &logits));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_logits(NULL, &logits));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_set_sampling(NULL, &sampling));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_decode(NULL, &id));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_sample(NULL, &id));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_reset(NULL));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_follow(NULL, id_in, 1, NULL));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_use_prefix(NULL));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_generate(NULL, NULL, NULL));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_stats(NULL, &stats));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_reset_stats(NULL));
  CHECK(arn_session_length(NULL) == 0);
  CHECK(strcmp(arn_session_last_error(NULL), "") == 0);
  arn_session_cancel(NULL);
  return 0;
}
