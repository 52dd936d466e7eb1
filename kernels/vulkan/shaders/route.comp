#version 450
#extension GL_GOOGLE_include_directive : require
// kRoute: top-k experts of a row, the lower id first on ties, and their weights
// (kernels/contract/route.h).
// One workgroup per row. Logits are replaced by scores, and by -1 once taken; each is read and
// written by one invocation only. A NaN score counts as 0, so that ids are valid and distinct for
// any logits. A correction is added to the scores for choosing only.
#include "common.glsl"
#include "math.glsl"

layout(constant_id = kRouteIsSigmoidId) const uint IS_SIGMOID = 0;  // else softmax
layout(constant_id = kRouteNormTopkProbId) const uint RENORMALISE = 0;
layout(constant_id = kRouteHasCorrectionId) const uint HAS_CORRECTION = 0;
layout(constant_id = kRouteHasGroupsId) const uint HAS_GROUPS = 0;

layout(set = 0, binding = 1) buffer In { float x[]; };
layout(set = 0, binding = 2) buffer Out { float y[]; };
layout(set = 0, binding = 3) readonly buffer Correction { float correction[]; };
layout(push_constant) uniform Push { RoutePush push; };

const float kTaken = -1.0;

float number_or_zero(float score) {
  return (floatBitsToUint(score) & 0x7fffffffu) > 0x7f800000u ? 0.0 : score;
}

const float kLowest = -3.402823e38;

// Above kLowest for experts that are not taken.
float choice_of(uint from, uint e) {
  float score = x[from + e];
  if (HAS_CORRECTION == 0) return score;
  if (score == kTaken) return kLowest;
  return max(number_or_zero(score + correction[push.weights_at + e]), 0.5 * kLowest);
}

// The sum of the two largest choices of a group.
float best_two(uint from, uint group) {
  uint size = push.n_experts / push.n_groups, first = group * size;
  uint lane = gl_LocalInvocationIndex, id = push.n_experts;
  float best = kLowest, second = kLowest;  // of this invocation's experts
  for (uint e = first + (lane + WIDTH - first % WIDTH) % WIDTH; e < first + size; e += WIDTH) {
    float choice = choice_of(from, e);
    if (choice > best) {
      second = best;
      best = choice;
      id = e;
    } else {
      second = max(second, choice);
    }
  }
  float largest = reduce_max(best);
  // Exact in f32: ids are below 2^16.
  float winner = reduce_min(float(best == largest ? id : push.n_experts));
  return largest + reduce_max(float(id) == winner ? second : best);
}

// Takes the experts outside of the groups with the largest sums, the lower group first on ties.
void keep_best_groups(uint from) {
  float sums[kRouteMaxGroups];
  bool is_kept[kRouteMaxGroups];
  for (uint g = 0; g < push.n_groups; ++g) {
    sums[g] = best_two(from, g);
    is_kept[g] = false;
  }
  for (uint i = 0; i < push.n_groups_chosen; ++i) {
    uint best = push.n_groups;
    for (uint g = 0; g < push.n_groups; ++g) {
      if (!is_kept[g] && (best == push.n_groups || sums[g] > sums[best])) best = g;
    }
    is_kept[best] = true;
  }
  uint size = push.n_experts / push.n_groups;
  for (uint e = gl_LocalInvocationIndex; e < push.n_experts; e += WIDTH) {
    if (!is_kept[e / size]) x[from + e] = kTaken;
  }
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
  if (HAS_CORRECTION == 1 && IS_SIGMOID == 0) {
    for (uint e = lane; e < push.n_experts; e += WIDTH) x[from + e] = divided(x[from + e], total);
    total = 1.0;
  }
  if (HAS_GROUPS == 1) keep_best_groups(from);
  float chosen_total = 0.0;
  for (uint i = 0; i < push.n_chosen; ++i) {
    float best = HAS_CORRECTION == 1 ? kLowest : kTaken;
    uint id = push.n_experts;
    for (uint e = lane; e < push.n_experts; e += WIDTH) {
      float choice = choice_of(from, e);
      if (choice > best) {
        best = choice;
        id = e;
      }
    }
    // Exact in f32: ids are below 2^16.
    float winner = reduce_max(best);
    uint chosen = uint(reduce_min(float(best == winner ? id : push.n_experts)));
    float score = winner;
    if (HAS_CORRECTION == 1) score = reduce_add(chosen % WIDTH == lane ? x[from + chosen] : 0.0);
    if (chosen % WIDTH == lane) x[from + chosen] = kTaken;
    if (lane == 0) {
      y[to + i] = float(chosen);
      y[to + push.n_chosen + i] = score;
    }
    chosen_total += score;
  }
  // The bounds are of probabilities, which the scores are only up to `total`.
  float whole = IS_SIGMOID == 1 ? 1.0 : total;
  chosen_total = max(chosen_total + push.epsilon * whole, push.least * whole);
  if (lane == 0 && (IS_SIGMOID == 0 || RENORMALISE == 1)) {
    for (uint i = push.n_chosen; i < 2 * push.n_chosen; ++i) {
      y[to + i] = divided(y[to + i], RENORMALISE == 1 ? chosen_total : total);
    }
  }
}
