/* Part of arenite.h: the device a session runs on: CPUs, temperature, energy. */
#ifndef ARENITE_DEVICE_H_
#define ARENITE_DEVICE_H_

#include <arenite/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A set of CPUs: bit b of word w is CPU 64 w + b. */
enum { ARN_CPU_WORDS = 16 };

/* A cluster of identical CPUs in one package, e.g. a phone's prime, big or little cores. */
typedef struct arn_cpu_cluster {
  size_t struct_size;
  uint64_t cpus[ARN_CPU_WORDS]; /* CPUs that the process may use */
  uint32_t n_cpus;
  uint32_t capacity;       /* relative to the largest CPU, 1024; 0: unknown */
  uint32_t max_khz;        /* 0: unknown */
  uint32_t is_performance; /* 1: at least half of the largest capacity */
} arn_cpu_cluster;
#define ARN_CPU_CLUSTER_INIT \
  { sizeof(arn_cpu_cluster), {0}, 0, 0, 0, 0 }
/* Returns cluster `index`, in order of falling capacity. Only CPUs that the calling thread may use
 * count. ARN_NOT_FOUND past the last cluster; at most 16. system_root: prepended to /sys; NULL: "".
 * Reads sysfs on each call. */
ARN_API arn_status arn_cpu_cluster_at(const char* system_root, uint32_t index,
                                      arn_cpu_cluster* out_cluster);

/* CPU affinity of a session's threads, read back from the system at each call. */
typedef struct arn_session_cpus_data {
  size_t struct_size;
  uint64_t wanted[ARN_CPU_WORDS];  /* requested CPUs; none: placed by the system */
  uint64_t applied[ARN_CPU_WORDS]; /* union of the CPUs that the threads may run on now */
  uint32_t n_threads; /* Threads covered: the session's own and the calling thread, as it was in
                         the last run. 0: the backend has none. */
  /* 1: each thread may run on exactly the CPUs of `wanted`, or the system places them. 0: the
   * system has moved some (Android does so with an app in the background). */
  uint32_t is_as_wanted;
} arn_session_cpus_data;
#define ARN_SESSION_CPUS_INIT \
  { sizeof(arn_session_cpus_data), {0}, {0}, 0, 0 }
ARN_API arn_status arn_session_cpus(const arn_session* session, arn_session_cpus_data* out_cpus);

/* Thermal zone of a session created with sensors = 1. */
typedef struct arn_thermal_zone {
  size_t struct_size;
  int32_t millicelsius; /* ARN_NO_TEMPERATURE: cannot be read now */
  char name[24];        /* the kernel's zone type: "cpu-0-0", "battery" */
} arn_thermal_zone;
#define ARN_THERMAL_ZONE_INIT          \
  {                                    \
    sizeof(arn_thermal_zone), 0, { 0 } \
  }
/* Reads a thermal zone. ARN_NOT_FOUND unless index < arn_session_stats_data.n_thermal_zones. */
ARN_API arn_status arn_session_thermal_zone(const arn_session* session, uint32_t index,
                                            arn_thermal_zone* out_zone);

#ifdef __cplusplus
}
#endif

#endif /* ARENITE_DEVICE_H_ */
