/* Per-step profile of a session. Experimental: not part of arenite.h; later versions may do more
 * than append fields. */
#ifndef ARENITE_PROFILE_H_
#define ARENITE_PROFILE_H_

#include <arenite/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One step of the session's program, summed over all runs since arn_session_profile_start. Bytes
 * and operations are the minimum for any backend: each weight read once per run, each key and value
 * once per sequence, a multiply-add counted as two operations. For experts: the maximum that the
 * run can have used. */
typedef struct arn_step_profile {
  size_t struct_size;
  const char* op;      /* "linear", "attention" ...: as in arn_program_dump */
  const char* dtype;   /* dtype of its weight matrix: "int8" ...; "" if it has none */
  uint32_t rows;       /* outputs of that matrix */
  uint32_t cols;       /* inputs */
  uint32_t layer;      /* 0 for steps outside layers */
  uint32_t is_encoder; /* 1: an encoder step */
  uint64_t runs;
  uint64_t ns; /* Wall time on the calling thread until the step was done. A step fused into the
                  previous one is counted there. */
  uint64_t weight_bytes; /* weight bytes read */
  uint64_t kv_bytes;     /* bytes read of keys, values and states */
  uint64_t integer_ops;  /* matmuls with int8 and int4 weights, attention to an int8 or smaller
                            cache */
  uint64_t float_ops;    /* all other matmuls */
} arn_step_profile;
#define ARN_STEP_PROFILE_INIT \
  { sizeof(arn_step_profile), NULL, NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* Returns the number of steps of the session's program, encoder steps included. */
ARN_API uint32_t arn_session_step_count(const arn_session* session);
/* Returns the bytes of memory that a profile needs. */
ARN_API uint64_t arn_session_profile_bytes(const arn_session* session);
/* Starts a profile at zero. memory: 8-byte aligned, arn_session_profile_bytes (else
 * ARN_BAD_ARGUMENT), must live until arn_session_profile_stop or the end of the session. While
 * active, a run reads the clock once per step. */
ARN_API arn_status arn_session_profile_start(arn_session* session, void* memory, uint64_t bytes);
/* Stops the profile; its memory is no longer used. No effect without a profile. */
ARN_API arn_status arn_session_profile_stop(arn_session* session);
/* Returns step `index` of the active profile. ARN_BAD_STATE without a profile, ARN_BAD_ARGUMENT if
 * the step does not exist. Failed runs are not counted. */
ARN_API arn_status arn_session_profile_step(const arn_session* session, uint32_t index,
                                            arn_step_profile* out_step);

#ifdef __cplusplus
}
#endif

#endif /* ARENITE_PROFILE_H_ */
