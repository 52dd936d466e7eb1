// Shared by all shaders: bindings, the run's words, and workgroup reductions.
//
// Binding 0 is the run (kernels/vulkan/lower/run_words.h), 1 is the input, 2 the output, 3 to 5 are
// weights and their metadata, 6 to 9 are windows onto the KV region, or what a matmul of few rows
// ends with (gemv_rows.glsl), 10 are counters (arrivals.glsl). Bindings start at aligned offsets;
// the push constants hold where the data starts after that, in words.
#extension GL_EXT_control_flow_attributes : require
#ifdef ARN_SUBGROUP
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#endif

#include "shared.h"

layout(local_size_x_id = 0) in;  // kWidthId
layout(constant_id = kWidthId) const uint WIDTH = 64;
layout(constant_id = kOneSubgroupId) const uint ONE_SUBGROUP = 0;

layout(set = 0, binding = 0) readonly buffer RunBlock { uint run[]; };

#define RUN_ROWS run[kRunRowCount]
#define RUN_LOGIT_ROWS run[kRunLogitRowCount]
// Bindings begin with this one of the rows. Functions of the run take it into account, data does not.
#define ARN_FIRST_ROW (push.of_rows & kFirstOfRows)
// Rows of the matrix that a matmul or an attention works on, from the first on.
#define ARN_ROWS                                                 \
  ((push.of_rows < kOfLogits   ? RUN_ROWS * push.row_factor      \
    : push.of_rows < kOfPooled ? RUN_LOGIT_ROWS                  \
                               : run[kRunPooledRowCount]) -      \
   ARN_FIRST_ROW)
uint row_token(uint row) { return run[kRunRows + row * kRowWords + kRowToken]; }
uint row_position(uint row) { return run[kRunRows + row * kRowWords + kRowPosition]; }
uint row_sequence(uint row) { return run[kRunRows + row * kRowWords + kRowSequence]; }
uint logit_row(uint i) { return run[run[kRunLogitRows] + i]; }
// Start of a sequence's words.
uint sequence_at(uint sequence) { return run[kRunSequences] + sequence * run[kRunSequenceWords]; }

// ---- reductions: all invocations of the workgroup take part and receive the result -------------
// WIDTH is a power of two. The barrier before writing SHARED protects reads of the previous
// reduction.
#ifdef ARN_SUBGROUP
#define ARN_REDUCE(NAME, TYPE, SHARED, SUBGROUP_OP, OP)                       \
  TYPE NAME(TYPE x) {                                                         \
    x = SUBGROUP_OP(x);                                                       \
    if (ONE_SUBGROUP == 0 && gl_NumSubgroups > 1) {                                                \
      barrier();                                                              \
      if (subgroupElect()) SHARED[gl_SubgroupID] = x;                         \
      barrier();                                                              \
      x = SHARED[0];                                                          \
      for (uint i = 1; i < gl_NumSubgroups; ++i) x = OP(x, SHARED[i]);        \
    }                                                                         \
    return x;                                                                 \
  }
#else
#define ARN_REDUCE(NAME, TYPE, SHARED, SUBGROUP_OP, OP)                       \
  TYPE NAME(TYPE x) {                                                         \
    const uint self = gl_LocalInvocationIndex;                                \
    barrier();                                                                \
    SHARED[self] = x;                                                         \
    barrier();                                                                \
    for (uint other = WIDTH / 2; other > 0; other /= 2) {                     \
      if (self < other) SHARED[self] = OP(SHARED[self], SHARED[self + other]); \
      barrier();                                                              \
    }                                                                         \
    return SHARED[0];                                                         \
  }
#endif
shared float reduced[WIDTH];
float plus(float a, float b) { return a + b; }
ARN_REDUCE(reduce_add, float, reduced, subgroupAdd, plus)
ARN_REDUCE(reduce_max, float, reduced, subgroupMax, max)
ARN_REDUCE(reduce_min, float, reduced, subgroupMin, min)
#ifdef ARN_INTEGERS
shared int reduced_ints[WIDTH];
int plus(int a, int b) { return a + b; }
ARN_REDUCE(reduce_add, int, reduced_ints, subgroupAdd, plus)
#endif
