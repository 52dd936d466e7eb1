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

#ifdef __cplusplus
}
#endif

#endif /* ARENITE_BEAMS_H_ */
