#version 450
#extension GL_GOOGLE_include_directive : require
// kRoute: top-k experts of a row, the lower id first on ties, and their weights
// (kernels/contract/route.h).
// One workgroup per row. Logits are replaced by scores, and by -1 once taken; each is read and
// written by one invocation only. A NaN score counts as 0, so that ids are valid and distinct for
// any logits.
#include "common.glsl"
#include "math.glsl"

layout(constant_id = kRouteIsSigmoidId) const uint IS_SIGMOID = 0;  // else softmax
layout(constant_id = kRouteNormTopkProbId) const uint RENORMALISE = 0;

layout(set = 0, binding = 1) buffer In { float x[]; };
layout(set = 0, binding = 2) buffer Out { float y[]; };
layout(push_constant) uniform Push { RoutePush push; };

const float kTaken = -1.0;

float number_or_zero(float score) {
  return (floatBitsToUint(score) & 0x7fffffffu) > 0x7f800000u ? 0.0 : score;
}

void main() {
  uint row = gl_WorkGroupID.y, lane = gl_LocalInvocationIndex;
  uint from = push.in_at + row * push.n_experts, to = push.out_at + row * 2 * push.n_chosen;
  float largest = uintBitsToFloat(0xff800000u);
  for (uint e = lane; e < push.n_experts; e += WIDTH) largest = max(largest, x[from + e]);
  largest = reduce_max(largest);
  float total = 0.0;
  for (uint e = lane; e < push.n_experts; e += WIDTH) {
    float logit = x[from + e];
    float score = number_or_zero(IS_SIGMOID == 1 ? divided(1.0, 1.0 + exp_f32(-logit))
                                                 : exp_f32(logit - largest));
    x[from + e] = score;
    total += score;
  }
  total = reduce_add(total);
  float chosen_total = 0.0;
  for (uint i = 0; i < push.n_chosen; ++i) {
    float best = kTaken;
    uint id = push.n_experts;
    for (uint e = lane; e < push.n_experts; e += WIDTH) {
      float score = x[from + e];
      if (score > best) {
        best = score;
        id = e;
      }
    }
    // Exact in f32: ids are below 2^16.
    float winner = reduce_max(best);
    uint chosen = uint(reduce_min(float(best == winner ? id : push.n_experts)));
    if (chosen % WIDTH == lane) x[from + chosen] = kTaken;
    if (lane == 0) {
      y[to + i] = float(chosen);
      y[to + push.n_chosen + i] = winner;
    }
    chosen_total += winner;
  }
  if (lane == 0 && (IS_SIGMOID == 0 || RENORMALISE == 1)) {
    for (uint i = push.n_chosen; i < 2 * push.n_chosen; ++i) {
      y[to + i] = divided(y[to + i], RENORMALISE == 1 ? chosen_total : total);
    }
  }
}
