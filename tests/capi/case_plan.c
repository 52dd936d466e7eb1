/* Plans, options and caller memory of a session. */
#define _POSIX_C_SOURCE 200809L

#include <stdlib.h>

#include "tests/capi/capi_case.h"

int capi_plan(capi_env* env) {
  arn_model* model = NULL;
  arn_session* session = NULL;
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  arn_memory_plan plan = ARN_MEMORY_PLAN_INIT, defaults = ARN_MEMORY_PLAN_INIT;
  arn_session_stats_data stats = ARN_SESSION_STATS_INIT;
  CHECK_STATUS(ARN_OK, arn_model_open(env->path, NULL, NULL, 0, &model));
  CHECK_STATUS(ARN_OK, arn_session_plan(model, NULL, NULL, 0, &defaults));
  CHECK(defaults.context_tokens == 256 && defaults.prefill_chunk == 128);
  CHECK(defaults.kv_page_tokens == 32 && defaults.n_threads >= 1);
  CHECK(defaults.n_prefill_threads == defaults.n_threads);
  CHECK(defaults.n_performance_cpus >= 1 && defaults.keeps_to_performance_cpus <= 1);
  CHECK_STATUS(ARN_OK, arn_session_plan(model, &options, NULL, 0, &plan));
  CHECK(plan.total_bytes == defaults.total_bytes);

  CHECK(strcmp(arn_kv_type_name(ARN_KV_F32), "f32") == 0);
  CHECK(strcmp(arn_kv_type_name(ARN_KV_INT2), "int2") == 0);
  CHECK(arn_kv_type_name(ARN_KV_INT2 + 1) == NULL && arn_kv_type_name(ARN_KV_AS_KEYS) == NULL);

  options.kv_type = ARN_KV_F32;
  options.context_tokens = 64;
  options.prefill_chunk = 16;
  options.n_threads = 2;
  options.kv_page_tokens = 8;
  CHECK_STATUS(ARN_OK, arn_session_plan(model, &options, NULL, 0, &plan));
  CHECK(plan.total_bytes ==
        plan.constants_bytes + plan.kv_bytes + plan.activations_bytes + plan.io_bytes);
  CHECK(plan.context_tokens == 64 && plan.prefill_chunk == 16 && plan.n_threads == 2);
  CHECK(plan.n_prefill_threads == 2);
  CHECK(plan.kv_page_tokens == 8 && plan.alignment > 0 && plan.weights_bytes > 0);
  /* 2 layers with K and V of 2 heads of 8 floats each, at least. */
  CHECK(plan.kv_bytes_per_token >= 2u * 2 * 2 * 8 * 4);
  CHECK(plan.kv_bytes >= 64 * plan.kv_bytes_per_token);

  CHECK_STATUS(ARN_OK, arn_session_create(model, &options, NULL, 0, NULL, 0, &session));
  CHECK_STATUS(ARN_OK, arn_session_stats(session, &stats));
  CHECK(stats.constants_used_bytes == plan.constants_bytes);
  CHECK(stats.activations_used_bytes == plan.activations_bytes);
  CHECK(stats.io_used_bytes == plan.io_bytes && stats.kv_capacity_bytes == plan.kv_bytes);
  arn_session_destroy(session);
  arn_session_destroy(NULL);
  arn_model_close(model);
  return 0;
}

int capi_plan_errors(capi_env* env) {
  arn_model* model = NULL;
  arn_memory_plan plan = ARN_MEMORY_PLAN_INIT;
  const arn_session_options good = ARN_SESSION_OPTIONS_INIT;
  arn_session_options options = good;
  char error[256] = "";
  CHECK_STATUS(ARN_OK, arn_model_open(env->path, NULL, NULL, 0, &model));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_plan(NULL, &options, error, sizeof error, &plan));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_plan(model, &options, error, sizeof error, NULL));
  plan.struct_size = 3;
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_plan(model, &options, error, sizeof error, &plan));
  plan.struct_size = sizeof plan;

  options.backend = 7;
  CHECK_STATUS(ARN_UNSUPPORTED, arn_session_plan(model, &options, error, sizeof error, &plan));
  CHECK(strstr(error, "backend") != NULL);
  options = good;
  options.kv_type = 5;
  CHECK_STATUS(ARN_UNSUPPORTED, arn_session_plan(model, &options, error, sizeof error, &plan));
  CHECK(strstr(error, "kv_type") != NULL);
  options = good;
  options.activation_bits = 12;
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_plan(model, &options, error, sizeof error, &plan));
  CHECK(strstr(error, "activation_bits is 12") != NULL);
  options = good;
  options.needs_gpu = 2;
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_plan(model, &options, error, sizeof error, &plan));
  CHECK(strstr(error, "needs_gpu") != NULL);
  options = good;
  options.half_products = 2;
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_plan(model, &options, error, sizeof error, &plan));
  CHECK(strstr(error, "half_products is 2") != NULL);
  options = good;
  options.context_tokens = 257;
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_plan(model, &options, error, sizeof error, &plan));
  CHECK(strstr(error, "257") != NULL && strstr(error, "256") != NULL);
  options = good;
  options.prefill_chunk = UINT32_MAX;
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_plan(model, &options, error, sizeof error, &plan));
  CHECK(strstr(error, "prefill_chunk") != NULL);
  options = good;
  options.n_prefill_threads = 100000;
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_plan(model, &options, error, sizeof error, &plan));
  CHECK(strstr(error, "n_prefill_threads") != NULL);
  options.n_prefill_threads = 0;
  options.n_threads = 100000;
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_plan(model, &options, error, sizeof error, &plan));
  CHECK(strstr(error, "n_threads") != NULL);
  options = good;
  options.kv_page_tokens = 24;
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_plan(model, &options, error, sizeof error, &plan));
  CHECK(strstr(error, "kv_page_tokens") != NULL);
  options = good;
  options.all_logits = 2;
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_plan(model, &options, error, sizeof error, &plan));
  CHECK(strstr(error, "all_logits") != NULL);
  arn_model_close(model);
  return 0;
}

/* Option structs of an older and of a newer program. */
int capi_options_size(capi_env* env) {
  struct {
    arn_session_options known;
    uint32_t added_later[4];
  } newer;
  arn_model* model = NULL;
  arn_memory_plan plan = ARN_MEMORY_PLAN_INIT;
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  char error[256] = "";
  CHECK_STATUS(ARN_OK, arn_model_open(env->path, NULL, NULL, 0, &model));
  options.struct_size = offsetof(arn_session_options, context_tokens);
  options.context_tokens = UINT32_MAX; /* beyond struct_size: ignored */
  CHECK_STATUS(ARN_OK, arn_session_plan(model, &options, error, sizeof error, &plan));
  CHECK(plan.context_tokens == 256);

  memset(&newer, 0, sizeof newer);
  newer.known.struct_size = sizeof newer;
  CHECK_STATUS(ARN_OK, arn_session_plan(model, &newer.known, error, sizeof error, &plan));
  newer.added_later[3] = 1;
  CHECK_STATUS(ARN_UNSUPPORTED, arn_session_plan(model, &newer.known, error, sizeof error, &plan));
  CHECK(strstr(error, "arn_session_options") != NULL);
  arn_model_close(model);
  return 0;
}

int capi_create_errors(capi_env* env) {
  arn_model* model = NULL;
  arn_session* session = (arn_session*)env;
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  char error[256] = "";
  CHECK_STATUS(ARN_OK, arn_model_open(env->path, NULL, NULL, 0, &model));
  CHECK_STATUS(ARN_BAD_ARGUMENT,
               arn_session_create(model, &options, NULL, 0, error, sizeof error, NULL));
  CHECK_STATUS(ARN_BAD_ARGUMENT,
               arn_session_create(NULL, &options, NULL, 0, error, sizeof error, &session));
  CHECK(session == NULL);
  options.struct_size = 2;
  CHECK_STATUS(ARN_BAD_ARGUMENT,
               arn_session_create(model, &options, NULL, 0, error, sizeof error, &session));
  CHECK(session == NULL && strstr(error, "struct_size") != NULL);
  options.struct_size = sizeof options;
  options.kv_type = 99;
  CHECK_STATUS(ARN_UNSUPPORTED,
               arn_session_create(model, &options, NULL, 0, error, sizeof error, &session));
  CHECK(session == NULL);
  arn_model_close(model);
  return 0;
}

int capi_caller_memory(capi_env* env) {
  arn_model* model = NULL;
  arn_session* session = NULL;
  arn_memory_plan plan = ARN_MEMORY_PLAN_INIT;
  const int32_t prompt[3] = {5, 6, 7};
  char error[256] = "";
  CHECK_STATUS(ARN_OK, arn_model_open(env->path, NULL, NULL, 0, &model));
  CHECK_STATUS(ARN_OK, arn_session_plan(model, NULL, NULL, 0, &plan));
  char* memory = NULL;
  const size_t guard = 64;
  CHECK(posix_memalign((void**)&memory, (size_t)plan.alignment, (size_t)plan.total_bytes + guard) ==
        0);
  memset(memory, 0xA5, (size_t)plan.total_bytes + guard);
  CHECK_STATUS(ARN_OUT_OF_MEMORY, arn_session_create(model, NULL, memory, plan.total_bytes - 1,
                                                     error, sizeof error, &session));
  CHECK(session == NULL && error[0] != '\0');
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_create(model, NULL, memory + 8, plan.total_bytes,
                                                    error, sizeof error, &session));
  CHECK(session == NULL);
  /* A second session in the same block starts clean. */
  for (int round = 0; round < 2; ++round) {
    int32_t id = -1;
    CHECK_STATUS(ARN_OK, arn_session_create(model, NULL, memory, plan.total_bytes, error,
                                            sizeof error, &session));
    CHECK(arn_session_length(session) == 0);
    CHECK_STATUS(ARN_OK, arn_session_prefill(session, prompt, 3));
    CHECK_STATUS(ARN_OK, arn_session_decode(session, &id));
    CHECK(id >= 0 && id < 61 && arn_session_length(session) == 4);
    arn_session_destroy(session);
  }
  for (size_t i = 0; i < guard; ++i) {
    CHECK(memory[plan.total_bytes + i] == (char)0xA5);
  }
  free(memory);
  arn_model_close(model);
  return 0;
}
