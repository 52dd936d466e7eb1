/* Device information of a session, on any device. */
#include <stddef.h>

#include "tests/capi/capi_case.h"

int capi_device(capi_env* env) {
  arn_model* model = NULL;
  arn_session* session = NULL;
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  arn_session_stats_data stats = ARN_SESSION_STATS_INIT;
  arn_session_cpus_data cpus = ARN_SESSION_CPUS_INIT;
  arn_thermal_zone zone = ARN_THERMAL_ZONE_INIT;
  arn_cpu_cluster cluster = ARN_CPU_CLUSTER_INIT;
  const int32_t prompt[2] = {3, 4};
  char error[256] = "";
  uint32_t n = 0;
  CHECK_STATUS(ARN_OK, arn_model_open(env->path, NULL, NULL, 0, &model));
  options.sensors = 1;
  options.n_threads = 2;
  CHECK_STATUS(ARN_OK, arn_session_create(model, &options, NULL, 0, error, sizeof error, &session));
  CHECK_STATUS(ARN_OK, arn_session_prefill(session, prompt, 2));
  CHECK_STATUS(ARN_OK, arn_session_stats(session, &stats));
  CHECK(stats.prefill_tokens_per_s > 0 && stats.decode_tokens_per_s == 0);
  CHECK(stats.weight_bytes_read > 0 && stats.paced_ns == 0 && stats.is_hot == 0);
  CHECK((stats.energy_source == ARN_ENERGY_NONE) == (stats.energy_name[0] == '\0'));
  for (n = 0; arn_session_thermal_zone(session, n, &zone) == ARN_OK; ++n) CHECK(zone.name[0] != 0);
  CHECK(n == stats.n_thermal_zones);
  CHECK_STATUS(ARN_OK, arn_session_cpus(session, &cpus));
  CHECK(cpus.n_threads == 2 && cpus.is_as_wanted == 1);
  CHECK_STATUS(ARN_OK, arn_cpu_cluster_at(NULL, 0, &cluster));
  CHECK(cluster.n_cpus > 0 && cluster.is_performance == 1);
  CHECK_STATUS(ARN_NOT_FOUND, arn_cpu_cluster_at("/nonexistent", 1, &cluster));

  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_thermal_zone(NULL, 0, &zone));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_thermal_zone(session, 0, NULL));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_cpus(NULL, &cpus));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_cpus(session, NULL));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_cpu_cluster_at(NULL, 0, NULL));
  arn_session_destroy(session);
  arn_model_close(model);
  return 0;
}

/* A caller compiled with the first version of the struct gets only its fields. */
int capi_device_structs(capi_env* env) {
  arn_model* model = NULL;
  arn_session* session = NULL;
  arn_session_stats_data stats;
  arn_session_cpus_data cpus = ARN_SESSION_CPUS_INIT;
  const int32_t prompt[2] = {3, 4};
  memset(&stats, 0x5A, sizeof stats);
  CHECK_STATUS(ARN_OK, arn_model_open(env->path, NULL, NULL, 0, &model));
  CHECK_STATUS(ARN_OK, arn_session_create(model, NULL, NULL, 0, NULL, 0, &session));
  CHECK_STATUS(ARN_OK, arn_session_prefill(session, prompt, 2));
  stats.struct_size = offsetof(arn_session_stats_data, prefill_tokens_per_s);
  CHECK_STATUS(ARN_OK, arn_session_stats(session, &stats));
  CHECK(stats.prefill_tokens == 2 && stats.kv_capacity_bytes > 0);
  CHECK(stats.struct_size == offsetof(arn_session_stats_data, prefill_tokens_per_s));
  CHECK(stats.weight_bytes_read == 0x5A5A5A5A5A5A5A5Au);
  cpus.struct_size = 3;
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_session_cpus(session, &cpus));
  arn_session_destroy(session);
  arn_model_close(model);
  return 0;
}
