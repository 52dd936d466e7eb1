/* Per-step profile of a session, and counts of what a GPU would do. Experimental: not part of
 * arenite.h; later versions may do more than append fields. */
#ifndef ARENITE_PROFILE_H_
#define ARENITE_PROFILE_H_

#include <arenite/image.h>
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

/* Properties of a GPU that decide which kernels run on it. */
typedef struct arn_gpu_traits {
  size_t struct_size;
  uint32_t subgroup_size;      /* 0: without subgroup arithmetic */
  uint32_t has_full_subgroups; /* 1: workgroups of one subgroup can be forced */
  uint32_t has_dot;            /* 1: integer dot products */
  uint32_t is_unified;         /* 1: shares the host's memory */
  uint32_t max_lanes;          /* most invocations of a workgroup */
  uint32_t shared_memory;      /* bytes of a workgroup */
  uint32_t coop_m;             /* int8 cooperative matrices: rows, outputs, */
  uint32_t coop_n;             /* and summed columns; 0: none */
  uint32_t coop_k;
  uint32_t matmul_variant; /* of the backend's, from 0 (ARN_NOT_FOUND: there are fewer); the first
                              where the GPU cannot run it */
  uint32_t has_half;       /* 1: f16 arithmetic; used with arn_session_options.half_products */
  uint32_t half_coop_m;    /* f16 cooperative matrices with f32 sums: as coop_m, coop_n, coop_k. */
  uint32_t half_coop_n;    /* Attention of many rows has them where matmuls of int8 and int4 */
  uint32_t half_coop_k;    /* weights have int8 matrices. */
} arn_gpu_traits;
#define ARN_GPU_TRAITS_INIT \
  { sizeof(arn_gpu_traits), 0, 0, 0, 0, 128, 16384, 0, 0, 0, 0, 0, 0, 0, 0 }

/* Work of one dispatch of a kernel. The words that describe a run, such as its page tables, are
 * left out. */
typedef struct arn_dispatch_cost {
  size_t struct_size;
  const char* kernel; /* "gemv", "attention_tile" ...; valid during the callback */
  const char* dtype;  /* of its weights; "" if it is no matmul */
  uint32_t rows;      /* of its matrix: outputs */
  uint32_t cols;      /* inputs */
  uint32_t waits;     /* 1: a barrier before it */
  uint64_t groups;    /* workgroups */
  uint64_t loaded;    /* bytes that all invocations load, the same byte each time */
  uint64_t stored;
  uint64_t least;        /* bytes of all operands: each once */
  uint64_t far_loaded;   /* part of `loaded`: an operand that workgroups load as a whole, one after
                            another */
  uint64_t far_bytes;    /* its size: if no cache holds it, all of far_loaded comes from memory */
  uint64_t int_products; /* int8 multiplications of matmuls */
  uint64_t float_products;       /* of matmuls, attention, convolutions and scans */
  uint64_t reductions;           /* of a value over a workgroup */
  uint64_t half_products;        /* f16 multiplications of matmuls */
  uint64_t half_matrix_products; /* of f16 cooperative matrices, in attention */
} arn_dispatch_cost;
#define ARN_DISPATCH_COST_INIT \
  { sizeof(arn_dispatch_cost), NULL, NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
typedef void (*arn_dispatch_callback)(void* user, const arn_dispatch_cost* cost);

/* Counts what a GPU would do to run n_tokens tokens after n_before others of one sequence, without
 * a GPU: calls `callback` for each dispatch, in their order. The last token has logits; a run of
 * one token chooses the next, greedily. `options`: of a session with ARN_BACKEND_VULKAN.
 * Models with an encoder: encoder_rows of its rows are read. ARN_UNSUPPORTED: another backend, or a
 * library without ARENITE_COUNTS. ARN_BAD_ARGUMENT: n_tokens is 0 or above prefill_chunk, or the
 * context is too small. */
ARN_API arn_status arn_session_count(const arn_model* model, const arn_session_options* options,
                                     const arn_gpu_traits* gpu, uint32_t n_tokens,
                                     uint32_t n_before, arn_dispatch_callback callback, void* user,
                                     char* error, size_t error_bytes);
/* Counts, likewise, what the encoder does with encoder_rows rows, and sets *out_rows to them.
 * ARN_UNSUPPORTED: the model has none, too. */
ARN_API arn_status arn_session_count_encoder(const arn_model* model,
                                             const arn_session_options* options,
                                             const arn_gpu_traits* gpu,
                                             arn_dispatch_callback callback, void* user,
                                             char* error, size_t error_bytes, uint32_t* out_rows);
/* Counts, likewise, what a vision tower does with the largest tile of images up to max_side, and
 * sets *out_rows to its patches. `options`: of an image encoder with ARN_BACKEND_VULKAN. Errors as
 * arn_session_count and arn_image_plan. */
ARN_API arn_status arn_image_count(const arn_model* model, const arn_image_options* options,
                                   const arn_gpu_traits* gpu, arn_dispatch_callback callback,
                                   void* user, char* error, size_t error_bytes, uint32_t* out_rows);

#ifdef __cplusplus
}
#endif

#endif /* ARENITE_PROFILE_H_ */
