/* Profile of a session's steps. */
#include <arenite/profile.h>
#include <stdlib.h>

#include "tests/capi/capi_case.h"

typedef struct fixture {
  arn_model* model;
  arn_session* session;
  void* memory;
  uint64_t bytes;
} fixture;

static int begin(capi_env* env, fixture* f) {
  char error[256] = "";
  memset(f, 0, sizeof *f);
  CHECK_STATUS(ARN_OK, arn_model_open(env->path, NULL, error, sizeof error, &f->model));
  CHECK_STATUS(ARN_OK,
               arn_session_create(f->model, NULL, NULL, 0, error, sizeof error, &f->session));
  f->bytes = arn_session_profile_bytes(f->session);
  f->memory = malloc((size_t)f->bytes);
  CHECK(f->bytes > 0 && f->memory != NULL);
  return 0;
}

static void end(fixture* f) {
  arn_session_destroy(f->session);
  arn_model_close(f->model);
  free(f->memory);
}

/* Sums the profiles of all steps with `op`; non-numeric fields come from the last one. */
static int sum_of(capi_env* env, const fixture* f, const char* op, arn_step_profile* sum) {
  const arn_step_profile zero = ARN_STEP_PROFILE_INIT;
  *sum = zero;
  for (uint32_t i = 0; i < arn_session_step_count(f->session); ++i) {
    arn_step_profile step = ARN_STEP_PROFILE_INIT;
    CHECK_STATUS(ARN_OK, arn_session_profile_step(f->session, i, &step));
    CHECK(step.struct_size == sizeof step && step.is_encoder == 0);
    if (strcmp(step.op, op) != 0) continue;
    sum->dtype = step.dtype;
    sum->runs += step.runs;
    sum->ns += step.ns;
    sum->weight_bytes += step.weight_bytes;
    sum->kv_bytes += step.kv_bytes;
    sum->integer_ops += step.integer_ops;
    sum->float_ops += step.float_ops;
  }
  return 0;
}

int capi_profile(capi_env* env) {
  fixture f;
  const int32_t prompt[5] = {3, 1, 4, 1, 5};
  int32_t id = 0;
  arn_step_profile prefill, decode, logits, attention;
  arn_session_stats_data stats = ARN_SESSION_STATS_INIT;
  if (begin(env, &f) != 0) return 1;
  CHECK(arn_session_step_count(f.session) > 5);

  CHECK_STATUS(ARN_OK, arn_session_profile_start(f.session, f.memory, f.bytes));
  CHECK_STATUS(ARN_OK, arn_session_prefill(f.session, prompt, 5));
  if (sum_of(env, &f, "linear", &prefill) != 0) return 1;
  if (sum_of(env, &f, "logits", &logits) != 0) return 1;
  CHECK(prefill.ns > 0 && prefill.dtype[0] != '\0');
  CHECK(logits.runs == 1 && logits.float_ops + logits.integer_ops > 0);

  /* A restart resets the counters. One token reads the same weights and does a fifth of the work.
   */
  CHECK_STATUS(ARN_OK, arn_session_profile_start(f.session, f.memory, f.bytes));
  CHECK_STATUS(ARN_OK, arn_session_reset_stats(f.session));
  CHECK_STATUS(ARN_OK, arn_session_decode(f.session, &id));
  CHECK_STATUS(ARN_OK, arn_session_stats(f.session, &stats));
  if (sum_of(env, &f, "linear", &decode) != 0) return 1;
  if (sum_of(env, &f, "attention", &attention) != 0) return 1;
  CHECK(decode.runs == prefill.runs && decode.ns > 0 && decode.ns < stats.decode_ns);
  CHECK(decode.weight_bytes == prefill.weight_bytes);
  CHECK(5 * decode.float_ops == prefill.float_ops && 5 * decode.integer_ops == prefill.integer_ops);
  CHECK(attention.dtype[0] == '\0' && attention.weight_bytes == 0);
  CHECK(attention.kv_bytes == stats.kv_bytes_read_per_token);

  /* After stop, the profile memory is not written. */
  CHECK_STATUS(ARN_OK, arn_session_profile_stop(f.session));
  memset(f.memory, 0x5a, (size_t)f.bytes);
  CHECK_STATUS(ARN_OK, arn_session_decode(f.session, &id));
  for (uint64_t i = 0; i < f.bytes; ++i) CHECK(((const unsigned char*)f.memory)[i] == 0x5a);
  end(&f);
  return 0;
}

int capi_profile_errors(capi_env* env) {
  fixture f;
  arn_step_profile step = ARN_STEP_PROFILE_INIT;
  if (begin(env, &f) != 0) return 1;
  const uint32_t n = arn_session_step_count(f.session);
  CHECK_STATUS(ARN_BAD_STATE, arn_session_profile_step(f.session, 0, &step));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_profile_start(f.session, NULL, f.bytes));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_profile_start(f.session, f.memory, f.bytes - 1));
  CHECK(strstr(arn_session_last_error(f.session), "profile") != NULL);
  CHECK_STATUS(ARN_BAD_ARGUMENT,
               arn_session_profile_start(f.session, (char*)f.memory + 1, f.bytes));
  CHECK_STATUS(ARN_OK, arn_session_profile_start(f.session, f.memory, f.bytes));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_profile_step(f.session, n, &step));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_profile_step(f.session, 0, NULL));
  CHECK_STATUS(ARN_OK, arn_session_profile_step(f.session, n - 1, &step));
  CHECK(step.runs == 0 && step.ns == 0);
  CHECK_STATUS(ARN_OK, arn_session_profile_stop(f.session));
  CHECK_STATUS(ARN_OK, arn_session_profile_stop(f.session));
  CHECK_STATUS(ARN_BAD_STATE, arn_session_profile_step(f.session, 0, &step));
  end(&f);
  CHECK(arn_session_step_count(NULL) == 0 && arn_session_profile_bytes(NULL) == 0);
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_profile_start(NULL, &step, sizeof step));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_profile_stop(NULL));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_profile_step(NULL, 0, &step));
  return 0;
}

typedef struct counted {
  uint32_t n_dispatches;
  uint64_t least, int_products, float_products;
  char first[16];
} counted;

static void add(void* user, const arn_dispatch_cost* cost) {
  counted* sum = user;
  if (sum->n_dispatches++ == 0) snprintf(sum->first, sizeof sum->first, "%s", cost->kernel);
  sum->least += cost->least;
  sum->int_products += cost->int_products;
  sum->float_products += cost->float_products;
}

int capi_count(capi_env* env) {
  arn_model* model = NULL;
  char error[256] = "";
  CHECK_STATUS(ARN_OK, arn_model_open(env->path, NULL, error, sizeof error, &model));
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  arn_gpu_traits gpu = ARN_GPU_TRAITS_INIT;
  counted sum = {0, 0, 0, 0, ""}, after = sum, row = sum;
  options.prefill_chunk = 16;
  options.backend = ARN_BACKEND_CPU;
  CHECK_STATUS(ARN_UNSUPPORTED,
               arn_session_count(model, &options, &gpu, 1, 0, add, &sum, error, sizeof error));
  CHECK(error[0] != '\0' && sum.n_dispatches == 0);
  options.backend = ARN_BACKEND_VULKAN;
  const arn_status status =
      arn_session_count(model, &options, &gpu, 16, 0, add, &sum, error, sizeof error);
  if (status == ARN_UNSUPPORTED) { /* a library without Vulkan */
    arn_model_close(model);
    return 0;
  }
  CHECK_STATUS(ARN_OK, status);
  CHECK(strcmp(sum.first, "embed") == 0 && sum.n_dispatches > 5 && sum.least > 0);
  CHECK(sum.int_products + sum.float_products > 0);
  /* After other tokens there are more keys to read. */
  CHECK_STATUS(ARN_OK,
               arn_session_count(model, &options, &gpu, 16, 64, add, &after, error, sizeof error));
  CHECK(after.least > sum.least && after.n_dispatches == sum.n_dispatches);
  CHECK_STATUS(ARN_OK,
               arn_session_count(model, &options, &gpu, 1, 64, add, &row, error, sizeof error));
  CHECK(row.least < after.least);
  /* The model has neither an encoder nor a vision tower. */
  uint32_t rows = 1;
  const arn_image_options images = ARN_IMAGE_OPTIONS_INIT;
  CHECK_STATUS(ARN_UNSUPPORTED, arn_session_count_encoder(model, &options, &gpu, add, &sum, error,
                                                          sizeof error, &rows));
  CHECK(strstr(error, "encoder") != NULL && rows == 0);
  CHECK_STATUS(ARN_UNSUPPORTED,
               arn_image_count(model, &images, &gpu, add, &sum, error, sizeof error, &rows));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_count_encoder(model, &options, &gpu, add, &sum, error,
                                                           sizeof error, NULL));
  CHECK_STATUS(ARN_BAD_ARGUMENT,
               arn_image_count(NULL, &images, &gpu, add, &sum, error, sizeof error, &rows));

  CHECK_STATUS(ARN_BAD_ARGUMENT,
               arn_session_count(model, &options, &gpu, 0, 0, add, &sum, error, sizeof error));
  CHECK_STATUS(ARN_BAD_ARGUMENT,
               arn_session_count(model, &options, &gpu, 17, 0, add, &sum, error, sizeof error));
  CHECK(strstr(error, "17 tokens after 0") != NULL);
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_count(model, &options, &gpu, 1, UINT32_MAX, add, &sum,
                                                   error, sizeof error));
  CHECK_STATUS(ARN_BAD_ARGUMENT,
               arn_session_count(model, &options, &gpu, 1, 0, NULL, &sum, error, sizeof error));
  CHECK_STATUS(ARN_BAD_ARGUMENT,
               arn_session_count(NULL, &options, &gpu, 1, 0, add, &sum, error, sizeof error));
  gpu.max_lanes = 64;
  CHECK_STATUS(ARN_BAD_ARGUMENT,
               arn_session_count(model, &options, &gpu, 1, 0, add, &sum, error, sizeof error));
  CHECK(strstr(error, "max_lanes 64") != NULL);
  gpu.max_lanes = 128;
  gpu.has_half = 2;
  CHECK_STATUS(ARN_BAD_ARGUMENT,
               arn_session_count(model, &options, &gpu, 1, 0, add, &sum, error, sizeof error));
  CHECK(strstr(error, "has_half is 2") != NULL);
  gpu.has_half = 0;
  gpu.matmul_variant = 1000;
  CHECK_STATUS(ARN_NOT_FOUND,
               arn_session_count(model, &options, &gpu, 1, 0, add, &sum, error, sizeof error));
  arn_model_close(model);
  return 0;
}
