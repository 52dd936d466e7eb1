#version 450
#extension GL_GOOGLE_include_directive : require
// kConv: one invocation per channel of a row, with the activation that follows. The last row of
// each sequence stores the inputs that the next run starts with.
#include "common.glsl"
#include "math.glsl"
layout(push_constant) uniform Push { ConvPush push; };
#include "kv.glsl"

// [b | c | x]: the input is b * x, the result is multiplied by c.
layout(constant_id = kConvIsGatedId) const uint IS_GATED = 0;
layout(constant_id = kConvHasBiasId) const uint HAS_BIAS = 0;
layout(constant_id = kConvIsActivatedId) const uint IS_ACTIVATED = 0;
layout(constant_id = kConvActivationId) const uint ACTIVATION = 0;

layout(set = 0, binding = 1) readonly buffer In { float x[]; };
layout(set = 0, binding = 2) buffer Out { float y[]; };
layout(set = 0, binding = 3) readonly buffer Weight { float weight[]; };
layout(set = 0, binding = 4) readonly buffer Bias { float bias[]; };
#include "state.glsl"

// Returns input i of the extended sequence: the state's inputs, then the rows from first_row on.
float input_at(uint slot, uint first_row, uint i, uint c) {
  const uint kept = push.taps - 1;
  float value = 0.0;
  if (i < kept) {
    value = state_before(slot, i * push.width + c);
  } else {
    uint from = push.in_at + (first_row + i - kept) * push.in_stride;
    value = x[from + push.in_stride - push.width + c];
    if (IS_GATED == 1) value *= x[from + c];
  }
  return value;
}

void main() {
  uint c = gl_GlobalInvocationID.x, row = gl_WorkGroupID.y;
  if (c < push.width) {
    uint sequence = row_sequence(row), slot = slot_before(sequence);
    uint first_row = run[sequence_at(sequence) + kSequenceFirstRow];
    uint n_rows = run[sequence_at(sequence) + kSequenceRows];
    uint t = row - first_row;
    float sum = HAS_BIAS == 1 ? bias[push.rows_at + c] : 0.0;
    for (uint k = 0; k < push.taps; ++k) {
      precise float value = input_at(slot, first_row, t + k, c);
      sum += weight[push.weights_at + k * push.weight_stride + c] * value;
    }
    if (IS_GATED == 1) sum *= x[push.in_at + row * push.in_stride + push.width + c];
    y[push.out_at + row * push.width + c] = IS_ACTIVATED == 1 ? activated(ACTIVATION, sum) : sum;
    if (t + 1 == n_rows) {
      for (uint k = 0; k + 1 < push.taps; ++k) {
        put_state(slot_after(sequence), k * push.width + c,
                  input_at(slot, first_row, n_rows + k, c));
      }
    }
  }
}
