#version 450
#extension GL_GOOGLE_include_directive : require
// kGate: multiplies in place by an activated gate. Without a norm, an invocation has an element.
// With one, a workgroup has a group of a row, which is normalised before or after. QUANTIZES: the
// last workgroup of a row to end quantises it for the matmul that follows.
#include "common.glsl"
#include "math.glsl"

layout(constant_id = kActivationId) const uint ACTIVATION = 0;
layout(constant_id = kGateNormId) const uint NORM = 0;
layout(constant_id = kGateIsOfHeadsId) const uint OF_HEADS = 0;  // the softplus of a head's gate

layout(set = 0, binding = 1) readonly buffer Gates { float gates[]; };
layout(set = 0, binding = 2) coherent buffer Out { float y[]; };
layout(set = 0, binding = 3) readonly buffer Weight { float weight[]; };
layout(push_constant) uniform Push { GatePush push; };
layout(constant_id = kRowQuantizesId) const uint QUANTIZES = 0;
#include "arrivals.glsl"
#include "quantize.glsl"

// Returns what column c of the row is multiplied by.
float factor_of(uint row, uint c) {
  uint at = push.in_at + row * push.stride;
  if (OF_HEADS == 1) return softplus_f32(gates[at + c / push.head_dim]);
  return activated(ACTIVATION, gates[at + c]);
}

vec4 out_quad(uint at) { return vec4(y[at], y[at + 1], y[at + 2], y[at + 3]); }

void quantize(uint row, uint from) {
  float low = 0.0, high = 0.0;
  for (uint c = 4 * gl_LocalInvocationIndex; c < push.width; c += 4 * WIDTH) {
    vec4 value = out_quad(from + c);
    low = min(low, min(min(value.x, value.y), min(value.z, value.w)));
    high = max(high, max(max(value.x, value.y), max(value.z, value.w)));
  }
  ARN_QUANTIZE_ROW(row, push.width, low, high, out_quad(from + c))
}

void normalise(uint row, uint to) {
  uint group = gl_WorkGroupID.x, first = group * push.n, lane = gl_LocalInvocationIndex;
  float square = 0.0;
  for (uint c = lane; c < push.n; c += WIDTH) {
    float value = y[to + first + c];
    if (NORM == kGateNormFollows) {
      value *= factor_of(row, first + c);
      y[to + first + c] = value;
    }
    square += value * value;
  }
  float inverse = 1.0 / sqrt(reduce_add(square) / float(push.n) + push.epsilon);
  for (uint c = lane; c < push.n; c += WIDTH) {
    float value = y[to + first + c] * inverse;
    value *= weight[push.weights_at + group * push.group_weights + c];
    if (NORM == kGateNormPrecedes) value *= factor_of(row, first + c);
    y[to + first + c] = value;
  }
}

void main() {
  uint row = gl_WorkGroupID.y, to = push.out_at + row * push.width;
  uint c = gl_GlobalInvocationID.x;
  if (NORM != kGateHasNoNorm) {
    normalise(row, to);
  } else if (c < push.width) {
    y[to + c] *= factor_of(row, c);
  }
  if (QUANTIZES == 1 && is_last_of(gl_NumWorkGroups.x, row)) quantize(row, to);
}
