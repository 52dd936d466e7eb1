/* Part of arenite.h: counts and times of a session, and its program as text. */
#ifndef ARENITE_STATS_H_
#define ARENITE_STATS_H_

#include <arenite/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Source of the energy in arn_session_stats_data: the first of these that can be read. */
enum {
  ARN_ENERGY_NONE = 0,
  ARN_ENERGY_RAPL = 1,          /* CPU packages; on most systems only root may read it */
  ARN_ENERGY_BOARD_COUNTER = 2, /* hwmon */
  ARN_ENERGY_BOARD_POWER = 3,   /* hwmon, integrated while the session runs */
  ARN_ENERGY_BATTERY_POWER = 4, /* a discharging battery, integrated while the session runs */
  ARN_ENERGY_BATTERY_LEFT = 5   /* remaining charge, which falls in coarse steps */
};
#define ARN_NO_TEMPERATURE INT32_MIN

typedef struct arn_session_stats_data {
  size_t struct_size;
  uint64_t prefill_tokens;
  uint64_t prefill_ns; /* including sleep */
  uint64_t decode_tokens;
  uint64_t decode_ns; /* including sleep and time in the callback */
  uint64_t create_ns;
  uint64_t weight_bytes_per_token;  /* weights read from memory by one decode step ... */
  uint64_t kv_bytes_read_per_token; /* ... and KV read at the current length */
  uint64_t kv_used_bytes;           /* pages in use */
  uint64_t constants_used_bytes, activations_used_bytes, io_used_bytes,
      kv_capacity_bytes;                            /* must equal the plan */
  double prefill_tokens_per_s, decode_tokens_per_s; /* from the above; 0: none yet */
  uint64_t weight_bytes_read;                       /* all runs; each weight once per run, ... */
  uint64_t kv_bytes_read; /* ... each key, value and state once per run and sequence */
  uint64_t paced_ns;      /* slept for max_tokens_per_s and thermal throttling */
  uint64_t cooled_ns;     /* part of it for thermal throttling */
  /* The fields below need sensors = 1; without, they are 0 and ARN_NO_TEMPERATURE. Read again after
   * 100 ms at the earliest. */
  uint64_t energy_uj; /* microjoules of everything that the energy source measures, not only this
                         process */
  uint64_t energy_ns; /* time, idle or not, covered by energy_uj; gaps where the energy could not
                         be read are missing */
  uint64_t power_uw;  /* microwatts at the last reading; 0: unknown */
  uint32_t energy_source;   /* ARN_ENERGY_... */
  uint32_t n_thermal_zones; /* found at creation, see arn_session_thermal_zone */
  int32_t temperature_mc; /* hottest readable zone in millidegrees Celsius, or ARN_NO_TEMPERATURE */
  uint32_t hottest_zone;  /* its index */
  float thermal_headroom; /* Android's; negative: unknown */
  uint32_t is_hot;        /* 1: over the session's thermal limit */
  char energy_name[32];   /* name of the energy source */
  /* With kv_file, the part of the cache that did not fit the memory: */
  uint64_t kv_file_bytes_read;    /* requested because it was missing, in whole OS pages */
  uint64_t kv_file_bytes_written; /* of pages that became full, or were quantised, while others were
                                     missing; writes by the OS itself are not counted */
  uint64_t kv_file_wait_ns;       /* time that layers waited for reads, beyond the computation */
  uint64_t recomputed_tokens;     /* run again after a rewind, by arn_session_follow, for their
                                     logits, or beside guesses because of recurrent states */
  uint32_t n_state_snapshots;     /* kept for the selected sequence now; not reset */
  /* Speculation: runs with guesses, the guesses in them, and those that were then chosen. Such a
   * run has a row for each guess and one for the token before them. */
  uint64_t guess_runs, guesses_proposed, guesses_accepted;
  uint64_t draft_ns; /* part of decode_ns: of the draft model, which reads prompts too, or of
                          the head of ARN_SPECULATE_MTP when it is asked */
} arn_session_stats_data;
#define ARN_SESSION_STATS_INIT                                                                     \
  {                                                                                                \
    sizeof(arn_session_stats_data), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
        0, 0, ARN_NO_TEMPERATURE, 0, -1, 0, {0}, 0, 0, 0, 0, 0, 0, 0, 0, 0                         \
  }
/* Returns counts and times since creation, or since arn_session_reset_stats. */
ARN_API arn_status arn_session_stats(const arn_session* session, arn_session_stats_data* out_stats);
/* Resets the counts: tokens, times, bytes read, energy. */
ARN_API arn_status arn_session_reset_stats(arn_session* session);

/* Writes the program of a session with these options as text, one step per line, to the caller's
 * buffer (not NUL-terminated). */
ARN_API arn_status arn_program_dump(const arn_model* model, const arn_session_options* options,
                                    char* out_text, size_t capacity, size_t* out_bytes);

#ifdef __cplusplus
}
#endif

#endif /* ARENITE_STATS_H_ */
