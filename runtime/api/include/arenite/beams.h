/* Part of arenite.h: beam search. */
#ifndef ARENITE_BEAMS_H_
#define ARENITE_BEAMS_H_

#include <arenite/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- beam search
 *
 * Follows transformers' generate() with num_beams (5.12). Each of the num_beam_groups groups
 * searches with num_beams / num_beam_groups beams; the groups go one after the other in each step.
 * A token costs diversity_penalty for each beam of an earlier group that chose it in the same step.
 */

/* Decides when a group with as many finished sequences as beams is done. */
enum {
  ARN_EARLY_STOPPING_FALSE = 0, /* once its best beam at its current length is no better than the
                                   worst finished sequence */
  ARN_EARLY_STOPPING_TRUE = 1,  /* at once */
  ARN_EARLY_STOPPING_NEVER = 2  /* as FALSE, but with length_penalty > 0 judged at max_tokens */
};

typedef struct arn_beam_options {
  size_t struct_size;
  uint32_t num_beams;            /* 1 .. max_sequences */
  uint32_t num_beam_groups;      /* divides num_beams */
  float diversity_penalty;       /* >= 0; 0 with one group */
  float length_penalty;          /* score = sum of log-probabilities / tokens ^ length_penalty */
  uint32_t early_stopping;       /* ARN_EARLY_STOPPING_... */
  uint32_t num_return_sequences; /* 1 .. num_beams */
  uint32_t max_tokens;           /* new tokens per sequence; 0: as many as fit the context */
  uint32_t ignore_eos;           /* 1: do not stop at stop tokens */
  const int32_t* extra_eos_ids;  /* stop tokens besides the model's own; 16 in total at most */
  size_t n_extra_eos_ids;
} arn_beam_options;
#define ARN_BEAM_OPTIONS_INIT \
  { sizeof(arn_beam_options), 1, 1, 0.0f, 1.0f, ARN_EARLY_STOPPING_FALSE, 1, 0, 0, NULL, 0 }

typedef struct arn_beam_result {
  size_t struct_size;
  uint32_t n_sequences;   /* found: num_return_sequences, or fewer */
  uint32_t n_steps;       /* tokens of the longest beam */
  uint64_t kv_peak_bytes; /* peak of the pages in use by all sequences */
} arn_beam_result;
#define ARN_BEAM_RESULT_INIT \
  { sizeof(arn_beam_result), 0, 0, 0 }

/* Runs a beam search from the selected, prefilled sequence. The beams use sequences 0 to num_beams
 * - 1, one run per step. All of these but the selected one must be empty (ARN_BAD_STATE), and all
 * are empty afterwards, also after a failure: keep a prompt in a sequence of a higher number. Beams
 * share the pages of common prefixes. ARN_CONTEXT_FULL if max_tokens do not fit the context
 * (nothing is shifted for beams) or the beams' pages do not fit kv_tokens. Sampling options are
 * ignored. out_result may be NULL. */
ARN_API arn_status arn_session_beam_search(arn_session* session, const arn_beam_options* options,
                                           arn_beam_result* out_result);
/* Returns result `index` of the last search, the best first: its new tokens, including a stop
 * token, and its score (may be NULL). Kept until the next search. ARN_BAD_ARGUMENT if there is no
 * such result; ARN_BUFFER_TOO_SMALL sets *out_count and the score. */
ARN_API arn_status arn_session_beam(arn_session* session, uint32_t index, int32_t* out_ids,
                                    size_t capacity, size_t* out_count, float* out_score);

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
} arn_session_stats_data;
#define ARN_SESSION_STATS_INIT                                                                     \
  {                                                                                                \
    sizeof(arn_session_stats_data), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
        0, 0, ARN_NO_TEMPERATURE, 0, -1, 0, {0}, 0, 0, 0                                           \
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

#endif /* ARENITE_BEAMS_H_ */
