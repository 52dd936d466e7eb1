#version 450
#extension GL_GOOGLE_include_directive : require
// kGatedAct: activation(gate) * up, for input [gate | up]. kAct: in place. An invocation computes
// four elements. QUANTIZES: a workgroup has a whole row, and quantises it for the matmul that
// follows.
#include "common.glsl"
#include "math.glsl"

layout(constant_id = kActivationId) const uint ACTIVATION = 0;
layout(constant_id = kActIsGatedId) const uint IS_GATED = 1;
layout(constant_id = kRowIsWholeId) const uint WHOLE = 0;
layout(constant_id = kRowQuantizesId) const uint QUANTIZES = 0;

layout(set = 0, binding = 1) readonly buffer In { float x[]; };
layout(set = 0, binding = 1) readonly buffer InQuads { vec4 x_quads[]; };
layout(set = 0, binding = 2) buffer Out { float y[]; };
layout(set = 0, binding = 2) buffer OutQuads { vec4 y_quads[]; };
layout(set = 0, binding = 3) readonly buffer Parameters { float parameters[]; };
layout(push_constant) uniform Push { GatedActPush push; };
#include "quantize.glsl"

#include "row_quads.glsl"
ARN_ROW_QUADS(x_at, x, x_quads)
ARN_ROW_QUADS(y_at, y, y_quads)
ARN_STORE_ROW_QUAD(put_y, y, y_quads)

float xielu(float x) {
  uint at = push.weights_at;
  float beta = parameters[at + 2];
  float alpha_p = softplus_f32(parameters[at]), alpha_n = beta + softplus_f32(parameters[at + 1]);
  float below = (exp_f32(min(x, parameters[at + 3])) - 1.0 - x) * alpha_n;
  return (x > 0.0 ? alpha_p * x * x : below) + beta * x;
}

// The only place that computes activations: each is many instructions. up: 1 if nothing is gated.
float value_of(float gate, float up) {
  if (ACTIVATION == kXielu) return xielu(gate) * up;
  return gated(ACTIVATION, gate, up, push.limit);
}

void main() {
  uint row = gl_WorkGroupID.y, n = push.n, to = push.out_at + row * n;
  // Without QUANTIZES, one turn.
  uint first = 4 * (QUANTIZES == 1 ? gl_LocalInvocationIndex : gl_GlobalInvocationID.x);
  uint step = QUANTIZES == 1 ? 4 * WIDTH : n;
  float low = 0.0, high = 0.0;
  for (uint c = first; c < n; c += step) {
    uint from = push.in_at + row * 2 * n;
    vec4 gate = IS_GATED == 1 ? x_at(from, c, n) : y_at(to, c, n);
    vec4 up = IS_GATED == 1 ? x_at(from + n, c, n) : vec4(1.0), value;
    for (uint j = 0; j < 4; ++j) value[j] = value_of(gate[j], up[j]);
    put_y(to, c, n, value);
    value = first_of(value, n - c);
    low = min(low, least_of(value));
    high = max(high, largest_of(value));
  }
  if (QUANTIZES == 1) ARN_QUANTIZE_ROW(row, n, low, high, y_at(to, c, n))
}
