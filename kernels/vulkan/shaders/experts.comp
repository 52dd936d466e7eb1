#version 450
#extension GL_GOOGLE_include_directive : require
// The parts of kExperts other than its matmuls. A pair is a row and one of its chosen experts.
#include "common.glsl"

layout(constant_id = kExpertsPartId) const uint PART = 0;
// kExpertsSum: the weights were applied to the input.
layout(constant_id = kExpertsIsWeighedId) const uint IS_WEIGHED = 0;
layout(constant_id = kExpertsAccumulateId) const uint ACCUMULATE = 1;

layout(set = 0, binding = 1) readonly buffer In { float x[]; };
layout(set = 0, binding = 2) buffer Out { float y[]; };
layout(set = 0, binding = 2) buffer Lists { uint lists[]; };
layout(set = 0, binding = 3) readonly buffer TopK { float topk[]; };
layout(push_constant) uniform Push { ExpertsPush push; };

shared uint n_listed;

float weight_of(uint row, uint i) {
  return topk[push.weights_at + (2 * row + 1) * push.n_chosen + i];
}

void main() {
  uint lane = gl_LocalInvocationIndex, at = gl_GlobalInvocationID.x, row = gl_WorkGroupID.y;
  if (PART == kExpertsWeigh && at < push.n) {
    uint from = row / push.n_chosen;
    y[push.out_at + row * push.n + at] =
        x[push.in_at + from * push.n + at] * weight_of(from, row % push.n_chosen);
  }
  if (PART == kExpertsSum && at < push.n) {
    float sum = ACCUMULATE == 1 ? y[push.out_at + row * push.n + at] : 0.0;
    for (uint i = 0; i < push.n_chosen; ++i) {
      float part = x[push.in_at + (row * push.n_chosen + i) * push.n + at];
      sum += IS_WEIGHED == 1 ? part : weight_of(row, i) * part;
    }
    y[push.out_at + row * push.n + at] = sum;
  }
  if (PART == kExpertsList) {
    uint expert = gl_WorkGroupID.x, pairs = RUN_ROWS * push.n_chosen;
    if (lane == 0) n_listed = 0;
    barrier();
    for (uint pair = lane; pair < pairs; pair += WIDTH) {
      uint i = pair / push.n_chosen * 2 * push.n_chosen + pair % push.n_chosen;
      if (uint(topk[push.weights_at + i]) == expert) {
        uint place = atomicAdd(n_listed, 1);
        if (place < push.list_words) {
          lists[push.out_at + push.lists_at + expert * push.list_words + place] = pair;
        }
      }
    }
    barrier();
    if (lane == 0) lists[push.out_at + expert] = min(n_listed, push.list_words);
  }
}
