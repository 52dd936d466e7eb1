/* What each step of a session costs. Experimental: not part of arenite.h, and without its promise
 * that later versions only append. */
#ifndef ARENITE_PROFILE_H_
#define ARENITE_PROFILE_H_

#include <arenite/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One step of the session's program, over all runs since arn_session_profile_start. Bytes and
 * operations are what the step cannot do without, whatever the backend does: each weight read once
 * a run, each key and value once for a sequence, a multiplication and its addition as two
 * operations. Of experts: the most that the run can have used. */
typedef struct arn_step_profile {
  size_t struct_size;
  const char* op;     /* "linear", "attention" ...: as arn_program_dump names it */
  const char* dtype;  /* of the matrix that it multiplies by: "int8" ...; "" when there is none */
  uint32_t rows;      /* of that matrix: outputs */
  uint32_t cols;      /* inputs */
  uint32_t layer;     /* 0 for steps that are of no layer */
  uint32_t is_source; /* 1: a step of the source */
  uint64_t runs;
  uint64_t ns; /* of the calling thread, until the step was done. What runs as one with the
                  step before is counted there */
  uint64_t weight_bytes; /* read */
  uint64_t kv_bytes;     /* read: keys, values and states */
  uint64_t integer_ops;  /* products with int8 and int4 weights, attention to an int8 or smaller
                            cache */
  uint64_t float_ops;    /* all other products */
} arn_step_profile;
#define ARN_STEP_PROFILE_INIT \
  { sizeof(arn_step_profile), NULL, NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* Steps of the session's program, those of the source included. */
ARN_API uint32_t arn_session_step_count(const arn_session* session);
/* Bytes of memory that a profile needs. */
ARN_API uint64_t arn_session_profile_bytes(const arn_session* session);
/* Begins a profile at zero, in the caller's memory: aligned to 8 bytes, arn_session_profile_bytes
 * (else ARN_BAD_ARGUMENT), alive until arn_session_profile_stop or the session's end. While it is
 * on, a run reads the clock once a step. */
ARN_API arn_status arn_session_profile_start(arn_session* session, void* memory, uint64_t bytes);
/* Ends it; its memory is not used any more. Without a profile nothing happens. */
ARN_API arn_status arn_session_profile_stop(arn_session* session);
/* Step `index` of the profile that is on; ARN_BAD_STATE without one, ARN_BAD_ARGUMENT when there is
 * no such step. Runs that failed are not counted. */
ARN_API arn_status arn_session_profile_step(const arn_session* session, uint32_t index,
                                            arn_step_profile* out_step);

#ifdef __cplusplus
}
#endif

#endif /* ARENITE_PROFILE_H_ */
