// Common to gemv_int.comp and gemv_float.comp: who computes which outputs, and what follows when all
// outputs of a row are there. Define ARN_ENDS before common.glsl.
layout(constant_id = kMatmulRowsId) const uint N_ROW = 1;
layout(constant_id = kMatmulOutsId) const uint N_OUT = 4;
// Parts of the workgroup with N_OUT outputs of their own: whole subgroups, if there are several.
layout(constant_id = kMatmulTeamsId) const uint TEAMS = 1;
// The norm that follows (kNorm); rows are multiples of four elements. 0: none.
layout(constant_id = kMatmulNormsId) const uint NORMS = 0;
layout(constant_id = kMatmulNormIsLayerId) const uint NORM_IS_LAYER = 0;
layout(constant_id = kMatmulNormAddsId) const uint NORM_ADDS = 0;
layout(constant_id = kMatmulQuantizesId) const uint QUANTIZES = 0;

layout(set = 0, binding = 6) buffer Normed { vec4 normed_quads[]; };
layout(set = 0, binding = 7) readonly buffer NormWeight { vec4 norm_weight_quads[]; };
layout(set = 0, binding = 8) readonly buffer NormBias { vec4 norm_bias_quads[]; };

#include "arrivals.glsl"
#define ARN_QUANTIZED_BINDING 9
#define ARN_QUANTIZED_AT push.next_at
#define ARN_QUANTIZED_VALUES_AT push.next_values_at
#define ARN_QUANTIZED_WORDS push.next_words
#include "quantize.glsl"

const uint LANES = WIDTH / TEAMS;
#ifdef ARN_SUBGROUP
uint team_lane() { return TEAMS == 1 ? gl_LocalInvocationIndex : gl_SubgroupInvocationID; }
uint first_out() {
  return (gl_WorkGroupID.x * TEAMS + (TEAMS == 1 ? 0 : gl_SubgroupID)) * N_OUT;
}
#else
uint team_lane() { return gl_LocalInvocationIndex; }
uint first_out() { return gl_WorkGroupID.x * N_OUT; }
#endif

// Adds each of the N_ROW * N_OUT values over the invocations of a team, all between the same
// barriers. The first invocation has the results.
const uint SUMS = N_ROW * N_OUT;
const bool kIsSubgroup = ONE_SUBGROUP == 1 || TEAMS > 1;
shared uint team_sums[kIsSubgroup ? 1 : SUMS * WIDTH];
#ifdef ARN_SUBGROUP
#define ARN_TEAM_ADD(TYPE, TO_WORD, FROM_WORD)                                                   \
  void team_add(inout TYPE x[SUMS]) {                                                            \
    [[unroll]] for (uint i = 0; i < SUMS; ++i) x[i] = subgroupAdd(x[i]);                         \
    if (!kIsSubgroup && gl_NumSubgroups > 1) {                                                   \
      [[unroll]] for (uint i = 0; i < SUMS; ++i) {                                               \
        if (subgroupElect()) team_sums[i * WIDTH + gl_SubgroupID] = TO_WORD(x[i]);               \
      }                                                                                          \
      barrier();                                                                                 \
      [[unroll]] for (uint i = 0; i < SUMS; ++i) {                                               \
        x[i] = FROM_WORD(team_sums[i * WIDTH]);                                                  \
        for (uint s = 1; s < gl_NumSubgroups; ++s) x[i] += FROM_WORD(team_sums[i * WIDTH + s]);  \
      }                                                                                          \
    }                                                                                            \
  }
#else
#define ARN_TEAM_ADD(TYPE, TO_WORD, FROM_WORD)                                                   \
  void team_add(inout TYPE x[SUMS]) {                                                            \
    const uint self = gl_LocalInvocationIndex;                                                   \
    [[unroll]] for (uint i = 0; i < SUMS; ++i) team_sums[i * WIDTH + self] = TO_WORD(x[i]);      \
    for (uint other = WIDTH / 2; other > 0; other /= 2) {                                        \
      barrier();                                                                                 \
      [[unroll]] for (uint i = 0; i < SUMS && self < other; ++i) {                               \
        const uint at = i * WIDTH + self;                                                        \
        x[i] = FROM_WORD(team_sums[at]) + FROM_WORD(team_sums[at + other]);                      \
        team_sums[at] = TO_WORD(x[i]);                                                           \
      }                                                                                          \
    }                                                                                            \
  }
#endif
ARN_TEAM_ADD(float, floatBitsToUint, uintBitsToFloat)
#ifdef ARN_INTEGERS
ARN_TEAM_ADD(int, uint, int)
#endif

float sum_of(vec4 v) { return (v.x + v.y) + (v.z + v.w); }
vec4 out_quad(uint at) { return vec4(y[at], y[at + 1], y[at + 2], y[at + 3]); }

// norm.comp for a row that other workgroups have written.
void normalise_row(uint row) {
  const uint n = push.out_stride, quads = n / 4, lane = gl_LocalInvocationIndex;
  const uint from = push.out_at + row * n, to = (push.normed_at + row * n) / 4;
  float mean = 0.0;
  if (NORM_IS_LAYER == 1) {
    float sum = 0.0;
    for (uint q = lane; q < quads; q += WIDTH) sum += sum_of(out_quad(from + 4 * q));
    mean = reduce_add(sum) / float(n);
  }
  float square = 0.0;
  for (uint q = lane; q < quads; q += WIDTH) {
    vec4 centred = out_quad(from + 4 * q) - mean;
    square += sum_of(centred * centred);
  }
  float inverse = 1.0 / sqrt(reduce_add(square) / float(n) + push.epsilon);
  float low = 0.0, high = 0.0;
  for (uint q = lane; q < quads; q += WIDTH) {
    vec4 value = (out_quad(from + 4 * q) - mean) * inverse * norm_weight_quads[push.norm_at / 4 + q];
    if (NORM_IS_LAYER == 1) value += norm_bias_quads[push.norm_bias_at / 4 + q];
    if (NORM_ADDS == 1) value += normed_quads[to + q];
    normed_quads[to + q] = value;
    low = min(low, min(min(value.x, value.y), min(value.z, value.w)));
    high = max(high, max(max(value.x, value.y), max(value.z, value.w)));
  }
  if (QUANTIZES == 1) ARN_QUANTIZE_ROW(row, n, low, high, normed_quads[to + c / 4])
}

// Call when the workgroup has written its outputs.
void end_rows() {
  if (NORMS == 0 || !is_last_of(gl_NumWorkGroups.x, gl_WorkGroupID.y)) return;
  const uint first = gl_WorkGroupID.y * N_ROW, end = min(first + N_ROW, ARN_ROWS);
  for (uint row = first; row < end; ++row) normalise_row(row);
}
