#version 450
#extension GL_GOOGLE_include_directive : require
// kLinear, kLogits and kExperts for few rows, int8 and int4 weights times rows quantised by
// quantize.comp. Work is split as in gemv_float.comp.
#define ARN_INTEGERS
#define ARN_ENDS
#include "common.glsl"
#include "math.glsl"
#include "weights.glsl"
#include "linear.glsl"

#include "gemv_rows.glsl"

uvec4 x_at(uint m, uint quad) {
  uint at = push.extra_at + push.values_at + input_row(m) * push.x_words + 4 * quad;
  return quantized_quads[at / 4];
}
// Steps of the loop whose loads are in flight together.
layout(constant_id = kMatmulStepsId) const uint STEPS = 1;

void multiply() {
  uint first = first_out(), first_row = gl_WorkGroupID.y * N_ROW, rows = ARN_ROWS;
  int sums[SUMS];
  float block_sums[SUMS];
  [[unroll]] for (uint i = 0; i < SUMS; ++i) {
    sums[i] = 0;
    block_sums[i] = 0.0;
  }
  for (uint from = team_lane(); from < push.row_quads; from += STEPS * LANES) {
    uvec4 a[STEPS * N_ROW], b[STEPS * N_ROW], w[STEPS * N_OUT];
    float scales[STEPS * N_OUT];
    [[unroll]] for (uint s = 0; s < STEPS; ++s) {
      // After the row's end its last 16 bytes are multiplied by zero.
      uint q = min(from + s * LANES, push.row_quads - 1);
      bool is_there = s == 0 || from + s * LANES < push.row_quads;
      [[unroll]] for (uint m = 0; m < N_ROW; ++m) {
        uint row = min(first_row + m, rows - 1);
        uvec4 x = x_at(row, TYPE == kTypeInt8 ? q : 2 * q);
        a[s * N_ROW + m] = is_there ? x : uvec4(0);
        if (TYPE == kTypeInt4) {
          x = x_at(row, 2 * q + 1);
          b[s * N_ROW + m] = is_there ? x : uvec4(0);
        }
      }
      [[unroll]] for (uint n = 0; n < N_OUT; ++n) {
        uint out_row = known_out(first, n);
        w[s * N_OUT + n] = weight_quads[weights_from() / 4 + out_row * push.row_quads + q];
        if (TYPE == kTypeInt4) scales[s * N_OUT + n] = block_scale(out_row, q);
      }
    }
    [[unroll]] for (uint i = 0; i < STEPS * N_OUT; ++i) {
      uint s = i / N_OUT, n = i % N_OUT;
      if (TYPE == kTypeInt8) {
        [[unroll]] for (uint m = 0; m < N_ROW; ++m) {
          sums[m * N_OUT + n] += dot16(a[s * N_ROW + m], w[i]);
        }
      } else {
        uvec4 low = halves(w[i].xy), high = halves(w[i].zw);
        [[unroll]] for (uint m = 0; m < N_ROW; ++m) {
          int sum = dot16(a[s * N_ROW + m], low) + dot16(b[s * N_ROW + m], high);
          block_sums[m * N_OUT + n] += scales[i] * float(sum);
        }
      }
    }
  }
  if (TYPE == kTypeInt8) {
    team_add(sums);
  } else {
    team_add(block_sums);
  }
  [[unroll]] for (uint m = 0; m < N_ROW; ++m) {
    [[unroll]] for (uint n = 0; n < N_OUT; ++n) {
      uint row = first_row + m, i = m * N_OUT + n, to = known_out(first, n);
      if (team_lane() == 0 && row < rows && has_out(first, n)) {
        float sum = TYPE == kTypeInt8 ? float(sums[i] - zero_part(row, to)) : block_sums[i];
        block_sums[i] = scaled(row, to, sum);
      }
    }
  }
  put_outputs(block_sums, first, first_row, rows);
  end_rows();
}

void main() {
  // Uniform across the workgroup, which has a single row if there are experts.
  if (N_CHOSEN == 0 || choose_expert(gl_WorkGroupID.y)) multiply();
}
