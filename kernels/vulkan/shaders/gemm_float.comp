#version 450
#extension GL_GOOGLE_include_directive : require
// kLinear, kLogits and kExperts for many rows, float weights. A workgroup computes one tile, DEPTH
// columns per iteration.
#include "common.glsl"
#include "math.glsl"
#include "weights.glsl"
#include "linear.glsl"
#include "tile_rows.glsl"
#include "tile_lanes.glsl"

layout(constant_id = kMatmulDepthId) const uint DEPTH = 32;
const uint X_PITCH = TILE_M + 1, W_PITCH = TILE_N + 1;
shared float x_tile[DEPTH * X_PITCH];
shared float w_tile[DEPTH * W_PITCH];

float w_at(uint n, uint c) {
  uint base = weights_from() + n * push.row_quads * 4;
  if (TYPE == kTypeF32) return uintBitsToFloat(weight_words[base + c]);
  return pair_of(TYPE, weight_words[base + c / 2])[c & 1u];
}

void main() {
  uint lane = gl_LocalInvocationIndex, rows = find_rows();
  uint first = gl_WorkGroupID.x * TILE_N, first_row = gl_WorkGroupID.y * TILE_M;
  uint cols = first_row < rows ? push.cols : 0;
  uint my_n = lane % LANES_N, my_m = lane / LANES_N;
  float sums[PER_M * PER_N];
  for (uint i = 0; i < PER_M * PER_N; ++i) sums[i] = 0.0;
  for (uint k = 0; k < cols; k += DEPTH) {
    for (uint i = lane; i < TILE_M * DEPTH; i += WIDTH) {
      uint c = i % DEPTH, at = i / DEPTH;
      bool has_x = k + c < push.cols && first_row + at < rows;
      x_tile[c * X_PITCH + at] =
          has_x ? x[push.in_at + input_row(row_of(first_row, at)) * push.cols + k + c] : 0.0;
    }
    for (uint i = lane; i < TILE_N * DEPTH; i += WIDTH) {
      uint c = i % DEPTH, at = i / DEPTH;
      bool has_w = k + c < push.cols && first + at < push.n_outs;
      w_tile[c * W_PITCH + at] = has_w ? w_at(first + at, k + c) : 0.0;
    }
    barrier();
    // Partial sums of a few columns: a single running sum would accumulate more rounding error.
    float of_tile[PER_M * PER_N];
    for (uint i = 0; i < PER_M * PER_N; ++i) of_tile[i] = 0.0;
    for (uint c = 0; c < DEPTH; ++c) {
      float a[PER_M], b[PER_N];
      [[unroll]] for (uint i = 0; i < PER_M; ++i) a[i] = x_tile[c * X_PITCH + my_m + LANES_M * i];
      [[unroll]] for (uint i = 0; i < PER_N; ++i) b[i] = w_tile[c * W_PITCH + my_n + LANES_N * i];
      [[unroll]] for (uint m = 0; m < PER_M; ++m) {
        [[unroll]] for (uint n = 0; n < PER_N; ++n) of_tile[PER_N * m + n] += a[m] * b[n];
      }
    }
    [[unroll]] for (uint i = 0; i < PER_M * PER_N; ++i) sums[i] += of_tile[i];
    barrier();
  }
  [[unroll]] for (uint m = 0; m < PER_M; ++m) {
    [[unroll]] for (uint n = 0; n < PER_N; ++n) {
      uint at = my_m + LANES_M * m, to = first + my_n + LANES_N * n;
      if (first_row + at < rows && to < push.n_outs) {
        put(row_of(first_row, at), to, sums[PER_N * m + n]);
      }
    }
  }
}
