#version 450
#extension GL_GOOGLE_include_directive : require
// kLinear, kLogits and kExperts for few rows, float weights. A workgroup computes N_OUT outputs of
// N_ROW rows; its invocations split the columns, 16 bytes of a weight row at a time.
#define ARN_ENDS
#include "common.glsl"
#include "math.glsl"
#include "weights.glsl"
#include "linear.glsl"

#include "gemv_rows.glsl"

layout(constant_id = kMatmulWholeId) const uint WHOLE = 0;  // cols is a multiple of 8

vec4 x_at(uint m, uint c) {
  uint at = push.in_at + input_row(m) * push.cols + c;
  if (WHOLE == 1) return x_quads[at / 4];
  return vec4(c < push.cols ? x[at] : 0.0, c + 1 < push.cols ? x[at + 1] : 0.0,
              c + 2 < push.cols ? x[at + 2] : 0.0, c + 3 < push.cols ? x[at + 3] : 0.0);
}

void multiply() {
  uint first = first_out(), first_row = gl_WorkGroupID.y * N_ROW, rows = ARN_ROWS;
  uint per = per_quad(TYPE);
  float sums[SUMS];
  for (uint i = 0; i < SUMS; ++i) sums[i] = 0.0;
  for (uint q = team_lane(); q < push.row_quads; q += LANES) {
    vec4 a[N_ROW], b[N_ROW];
    [[unroll]] for (uint m = 0; m < N_ROW; ++m) {
      uint row = min(first_row + m, rows - 1);
      a[m] = x_at(row, q * per);
      if (TYPE != kTypeF32) b[m] = x_at(row, q * per + 4);
    }
    [[unroll]] for (uint n = 0; n < N_OUT; ++n) {
      uint out_row = known_out(first, n);
      uvec4 w = weight_quads[weights_from() / 4 + out_row * push.row_quads + q];
      vec4 low, high;
      if (TYPE == kTypeF32) {
        low = uintBitsToFloat(w);
      } else {
        low = vec4(pair_of(TYPE, w.x), pair_of(TYPE, w.y));
        high = vec4(pair_of(TYPE, w.z), pair_of(TYPE, w.w));
      }
      [[unroll]] for (uint m = 0; m < N_ROW; ++m) {
        sums[m * N_OUT + n] += dot(a[m], low);
        if (TYPE != kTypeF32) sums[m * N_OUT + n] += dot(b[m], high);
      }
    }
  }
  team_add(sums);
  put_outputs(sums, first, first_row, rows);
  end_rows();
}

void main() {
  // Uniform across the workgroup, which has a single row if there are experts.
  if (N_CHOSEN == 0 || choose_expert(gl_WorkGroupID.y)) multiply();
}
