/* Part of arenite.h: the device that a session runs on: its CPUs, its heat, its energy. */
#ifndef ARENITE_DEVICE_H_
#define ARENITE_DEVICE_H_

#include <arenite/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A set of CPUs: bit b of word w is CPU 64 w + b. */
enum { ARN_CPU_WORDS = 16 };

/* CPUs of one package that are alike: of a phone's the prime, the big and the little cores. */
typedef struct arn_cpu_cluster {
  size_t struct_size;
  uint64_t cpus[ARN_CPU_WORDS]; /* those that the process may use */
  uint32_t n_cpus;
  uint32_t capacity;       /* as the kernel compares CPUs, the largest 1024; 0: it does not say */
  uint32_t max_khz;        /* 0: it does not say */
  uint32_t is_performance; /* 1: of at least half of the largest capacity */
} arn_cpu_cluster;
#define ARN_CPU_CLUSTER_INIT \
  { sizeof(arn_cpu_cluster), {0}, 0, 0, 0, 0 }
/* Cluster `index` of those with CPUs that the calling thread may use, the largest capacity first.
 * ARN_NOT_FOUND: there are no more; 16 at most. system_root: before /sys; NULL: "". Reads sysfs
 * anew each time. */
ARN_API arn_status arn_cpu_cluster_at(const char* system_root, uint32_t index,
                                      arn_cpu_cluster* out_cluster);

/* What a session's threads may run on, read back from the system when it is asked. */
typedef struct arn_session_cpus_data {
  size_t struct_size;
  uint64_t wanted[ARN_CPU_WORDS];  /* what they are to stay on; none: the system places them */
  uint64_t applied[ARN_CPU_WORDS]; /* what they may run on now, all of them together */
  uint32_t n_threads;              /* of which it was read: the calling thread, as it was in the
                                      last run, and those of the session; 0: the backend has none */
  uint32_t is_as_wanted;           /* 1: each may run on those of `wanted` and no others, or the
                                      system places them. 0: it has moved some elsewhere (Android
                                      does so with an app in the background) */
} arn_session_cpus_data;
#define ARN_SESSION_CPUS_INIT \
  { sizeof(arn_session_cpus_data), {0}, {0}, 0, 0 }
ARN_API arn_status arn_session_cpus(const arn_session* session, arn_session_cpus_data* out_cpus);

/* A thermal zone of a session that was created with sensors = 1. */
typedef struct arn_thermal_zone {
  size_t struct_size;
  int32_t millicelsius; /* ARN_NO_TEMPERATURE: it cannot be read now */
  char name[24];        /* its type, as the kernel has it: "cpu-0-0", "battery" */
} arn_thermal_zone;
#define ARN_THERMAL_ZONE_INIT          \
  {                                    \
    sizeof(arn_thermal_zone), 0, { 0 } \
  }
/* index < arn_session_stats_data.n_thermal_zones, else ARN_NOT_FOUND. Reads it anew. */
ARN_API arn_status arn_session_thermal_zone(const arn_session* session, uint32_t index,
                                            arn_thermal_zone* out_zone);

#ifdef __cplusplus
}
#endif

#endif /* ARENITE_DEVICE_H_ */
