#version 450
#extension GL_GOOGLE_include_directive : require
// Quantises rows of activations. One workgroup per row.
#include "common.glsl"
#include "math.glsl"

layout(constant_id = kRowIsWholeId) const uint WHOLE = 0;

layout(set = 0, binding = 1) readonly buffer In { float x[]; };
layout(set = 0, binding = 1) readonly buffer InQuads { vec4 x_quads[]; };
layout(push_constant) uniform Push { QuantizePush push; };
#include "quantize.glsl"

#include "row_quads.glsl"
ARN_ROW_QUADS(x_at, x, x_quads)

void main() {
  uint row = gl_WorkGroupID.y, first = 4 * gl_LocalInvocationIndex, n = push.n;
  const uint step = 4 * WIDTH;
  uint from = push.in_at + row * n;
  float low = 0.0, high = 0.0;
  for (uint c = first; c < n; c += step) {
    vec4 value = x_at(from, c, n);
    low = min(low, least_of(value));
    high = max(high, largest_of(value));
  }
  ARN_QUANTIZE_ROW(row, n, low, high, x_at(from, c, n))
}
