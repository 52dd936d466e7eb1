#version 450
#extension GL_GOOGLE_include_directive : require
// kNorm, the norm of kLogits, and the norm over all q or all k heads together. One workgroup per
// row, or per group of a row. QUANTIZES: also quantises the row for the matmul that follows.
#include "common.glsl"
#include "math.glsl"

layout(constant_id = kNormIsLayerId) const uint IS_LAYER = 0;  // else RMS
layout(constant_id = kNormAccumulateId) const uint ACCUMULATE = 0;
layout(constant_id = kNormGatherId) const uint GATHER = 0;  // output row i reads row logit_row(i)
layout(constant_id = kRowIsWholeId) const uint WHOLE = 0;
layout(constant_id = kRowQuantizesId) const uint QUANTIZES = 0;
layout(constant_id = kNormIsLostId) const uint IS_LOST = 0;  // the quantised rows alone are kept

layout(set = 0, binding = 1) readonly buffer In { float x[]; };
layout(set = 0, binding = 1) readonly buffer InQuads { vec4 x_quads[]; };
layout(set = 0, binding = 2) buffer Out { float y[]; };
layout(set = 0, binding = 2) buffer OutQuads { vec4 y_quads[]; };
layout(set = 0, binding = 3) readonly buffer Weight { float weight[]; };
layout(set = 0, binding = 3) readonly buffer WeightQuads { vec4 weight_quads[]; };
layout(set = 0, binding = 4) readonly buffer Bias { float bias[]; };
layout(set = 0, binding = 4) readonly buffer BiasQuads { vec4 bias_quads[]; };
layout(push_constant) uniform Push { NormPush push; };
#include "quantize.glsl"

#include "row_quads.glsl"
ARN_ROW_QUADS(x_at, x, x_quads)
ARN_ROW_QUADS(y_at, y, y_quads)
ARN_ROW_QUADS(weight_at, weight, weight_quads)
ARN_ROW_QUADS(bias_at, bias, bias_quads)
ARN_STORE_ROW_QUAD(put_y, y, y_quads)

vec4 normed(uint from, uint weights, uint c, float mean, float inverse) {
  const uint n = push.n;
  vec4 value = (x_at(from, c, n) - mean) * inverse * weight_at(weights, c, n);
  if (IS_LAYER == 1) value += bias_at(push.rows_at, c, n);
  return value;
}

float sum_of(vec4 v) { return (v.x + v.y) + (v.z + v.w); }

void main() {
  uint row = gl_WorkGroupID.y, first = 4 * gl_LocalInvocationIndex, n = push.n;
  const uint step = 4 * WIDTH;
  uint in_row = GATHER == 1 ? logit_row(row + ARN_FIRST_ROW) : row;
  uint group = gl_WorkGroupID.x, weights = push.weights_at + group * push.group_weights;
  uint from = push.in_at + in_row * push.in_stride + group * n;
  uint to = push.out_at + row * push.out_stride + group * n;
  float mean = 0.0;
  if (IS_LAYER == 1) {
    float sum = 0.0;
    for (uint c = first; c < n; c += step) sum += sum_of(x_at(from, c, n));
    mean = reduce_add(sum) / float(n);
  }
  float square = 0.0;
  for (uint c = first; c < n; c += step) {
    vec4 centred = first_of(x_at(from, c, n) - mean, n - c);
    square += dot(centred, centred);
  }
  // Works in place: the reduction's barrier separates all reads from the writes.
  float inverse = 1.0 / sqrt(reduce_add(square) / float(n) + push.epsilon);
  float low = 0.0, high = 0.0;
  for (uint c = first; c < n; c += step) {
    vec4 value = normed(from, weights, c, mean, inverse);
    if (ACCUMULATE == 1) value += y_at(to, c, n);
    if (IS_LOST == 0) put_y(to, c, n, value);
    value = first_of(value, n - c);
    low = min(low, least_of(value));
    high = max(high, largest_of(value));
  }
  if (QUANTIZES == 0) return;
  if (IS_LOST == 1) {
    ARN_QUANTIZE_ROW(row, n, low, high, normed(from, weights, c, mean, inverse))
  } else {
    ARN_QUANTIZE_ROW(row, n, low, high, y_at(to, c, n))
  }
}
