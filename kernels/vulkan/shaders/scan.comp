#version 450
#extension GL_GOOGLE_include_directive : require
// kScan, as in kernels/reference/scan.cc, in two dispatches. PASSES_BY: the skip connection, one
// invocation per channel of a row. Then the scan, added to it: one invocation per channel of a
// sequence, which processes the rows in order with the states in registers.
#include "common.glsl"
#include "math.glsl"
layout(push_constant) uniform Push { ScanPush push; };
#include "kv.glsl"

layout(constant_id = kScanPassesById) const uint PASSES_BY = 0;
layout(constant_id = kScanStatesId) const uint N_STATES = 1;

layout(set = 0, binding = 1) readonly buffer In { float x[]; };
layout(set = 0, binding = 2) buffer Out { float y[]; };
layout(set = 0, binding = 3) readonly buffer Weight { float weight[]; };  // PASSES_BY: D (skip);
                                                                          // else A (rates)
layout(set = 0, binding = 4) readonly buffer TimeSteps { float time_steps[]; };
layout(set = 0, binding = 5) readonly buffer Mix { float mixed[]; };
#include "state.glsl"

uint out_of(uint row, uint c) {
  return push.out_at + row * push.out_stride + push.out_stride - push.width + c;
}

void scan(uint sequence, uint c) {
  float states[N_STATES], rates[N_STATES];
  uint slot = slot_before(sequence);
  for (uint n = 0; n < N_STATES; ++n) {
    states[n] = state_before(slot, n * push.width + c);
    rates[n] = weight[push.weights_at + n * push.weight_stride + c];
  }
  uint first_row = run[sequence_at(sequence) + kSequenceFirstRow];
  uint end = first_row + run[sequence_at(sequence) + kSequenceRows];
  for (uint row = first_row; row < end; ++row) {
    float dt = softplus_f32(time_steps[push.rows_at + row * push.width + c]);
    float dx = dt * x[push.in_at + row * push.width + c];
    uint into = push.extra_at + row * 2 * N_STATES;
    float sum = y[out_of(row, c)];
    for (uint n = 0; n < N_STATES; ++n) {
      states[n] = exp_f32(dt * rates[n]) * states[n] + dx * mixed[into + n];
      sum += states[n] * mixed[into + N_STATES + n];
    }
    y[out_of(row, c)] = sum;
  }
  uint to = slot_after(sequence);
  for (uint n = 0; n < N_STATES; ++n) put_state(to, n * push.width + c, states[n]);
}

void main() {
  // The second dimension of the grid: rows, then sequences.
  uint c = gl_GlobalInvocationID.x, row = gl_WorkGroupID.y, sequence = gl_WorkGroupID.y;
  if (c < push.width) {
    if (PASSES_BY == 1) {
      y[out_of(row, c)] = weight[push.weights_at + c] * x[push.in_at + row * push.width + c];
    } else {
      scan(sequence, c);
    }
  }
}
