#version 450
#extension GL_GOOGLE_include_directive : require
// kNorm, the norm of kLogits, and the norm over all q or all k heads together. One workgroup per
// row.
#include "common.glsl"

layout(constant_id = kNormIsLayerId) const uint IS_LAYER = 0;  // else RMS
layout(constant_id = kNormAccumulateId) const uint ACCUMULATE = 0;
layout(constant_id = kNormGatherId) const uint GATHER = 0;  // output row i reads row logit_row(i)

layout(set = 0, binding = 1) readonly buffer In { float x[]; };
layout(set = 0, binding = 2) buffer Out { float y[]; };
layout(set = 0, binding = 3) readonly buffer Weight { float weight[]; };
layout(set = 0, binding = 4) readonly buffer Bias { float bias[]; };
layout(push_constant) uniform Push { NormPush push; };

void main() {
  uint row = gl_WorkGroupID.y, lane = gl_LocalInvocationIndex;
  uint in_row = GATHER == 1 ? logit_row(row + push.of_logits - 1) : row;
  uint from = push.in_at + in_row * push.in_stride;
  uint to = push.out_at + row * push.out_stride;
  float mean = 0.0;
  if (IS_LAYER == 1) {
    float sum = 0.0;
    for (uint i = lane; i < push.n; i += WIDTH) sum += x[from + i];
    mean = reduce_add(sum) / float(push.n);
  }
  float square = 0.0;
  for (uint i = lane; i < push.n; i += WIDTH) {
    float centred = x[from + i] - mean;
    square += centred * centred;
  }
  // Works in place: the reduction's barrier separates all reads from the writes.
  float inverse = 1.0 / sqrt(reduce_add(square) / float(push.n) + push.epsilon);
  for (uint i = lane; i < push.n; i += WIDTH) {
    float value = (x[from + i] - mean) * inverse * weight[push.weights_at + i];
    if (IS_LAYER == 1) value += bias[push.rows_at + i];
    y[to + i] = ACCUMULATE == 1 ? y[to + i] + value : value;
  }
}
