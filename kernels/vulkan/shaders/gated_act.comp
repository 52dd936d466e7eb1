#version 450
#extension GL_GOOGLE_include_directive : require
// kGatedAct: activation(gate) * up, for input [gate | up]. kAct: in place. One invocation per
// element.
#include "common.glsl"
#include "math.glsl"

layout(constant_id = kActivationId) const uint ACTIVATION = 0;
layout(constant_id = kActIsGatedId) const uint IS_GATED = 1;

layout(set = 0, binding = 1) readonly buffer In { float x[]; };
layout(set = 0, binding = 2) buffer Out { float y[]; };
layout(set = 0, binding = 3) readonly buffer Parameters { float parameters[]; };
layout(push_constant) uniform Push { GatedActPush push; };

float xielu(float x) {
  uint at = push.weights_at;
  float beta = parameters[at + 2];
  float alpha_p = softplus_f32(parameters[at]), alpha_n = beta + softplus_f32(parameters[at + 1]);
  float below = (exp_f32(min(x, parameters[at + 3])) - 1.0 - x) * alpha_n;
  return (x > 0.0 ? alpha_p * x * x : below) + beta * x;
}

void main() {
  uint i = gl_GlobalInvocationID.x, row = gl_WorkGroupID.y;
  if (i < push.n) {
    uint to = push.out_at + row * push.n + i;
    if (IS_GATED == 0) {
      y[to] = ACTIVATION == kXielu ? xielu(y[to]) : activated(ACTIVATION, y[to]);
    } else {
      uint from = push.in_at + row * 2 * push.n + i;
      float gate = x[from], up = x[from + push.n];
      if (ACTIVATION == kClampedSwiglu) {
        gate = min(gate, push.limit);
        up = clamp(up, -push.limit, push.limit);
        y[to] = gate / (1.0 + exp_f32(-1.702 * gate)) * (up + 1.0);
      } else {
        y[to] = activated(ACTIVATION, gate) * up;
      }
    }
  }
}
