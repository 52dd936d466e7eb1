#version 450
#extension GL_GOOGLE_include_directive : require
// kLinear, kLogits and kExperts for many rows, float weights. A workgroup of 64 makes a tile of 32
// rows and 32 outputs, 32 columns at a time; an invocation 4 by 4 of it.
#include "common.glsl"
#include "push.glsl"
#include "math.glsl"
#include "weights.glsl"
#include "linear.glsl"
#include "tile_rows.glsl"

const uint kDepth = 32, kPitch = kTile + 1;
shared float x_tile[kDepth * kPitch];
shared float w_tile[kDepth * kPitch];

float w_at(uint n, uint c) {
  uint base = weights_from() + n * push.row_quads * 4;
  if (TYPE == kF32) return uintBitsToFloat(weight_words[base + c]);
  return pair_of(TYPE, weight_words[base + c / 2])[c & 1u];
}

void main() {
  uint lane = gl_LocalInvocationIndex, rows = find_rows();
  uint first = gl_WorkGroupID.x * kTile, first_row = gl_WorkGroupID.y * kTile;
  uint cols = first_row < rows ? push.cols : 0;
  uint my_n = lane % 8, my_m = lane / 8;
  float sums[16];
  for (uint i = 0; i < 16; ++i) sums[i] = 0.0;
  for (uint k = 0; k < cols; k += kDepth) {
    for (uint i = lane; i < kTile * kDepth; i += WIDTH) {
      uint c = i % kDepth, at = i / kDepth;
      bool in_row = k + c < push.cols;
      bool has_x = in_row && first_row + at < rows, has_w = in_row && first + at < push.n_outs;
      x_tile[c * kPitch + at] =
          has_x ? x[push.in_at + input_row(row_of(first_row, at)) * push.cols + k + c] : 0.0;
      w_tile[c * kPitch + at] = has_w ? w_at(first + at, k + c) : 0.0;
    }
    barrier();
    // Sums of a few columns each: one running sum of all of them would round more.
    float of_tile[16];
    for (uint i = 0; i < 16; ++i) of_tile[i] = 0.0;
    for (uint c = 0; c < kDepth; ++c) {
      float a[4], b[4];
      [[unroll]] for (uint i = 0; i < 4; ++i) {
        a[i] = x_tile[c * kPitch + my_m + 8 * i];
        b[i] = w_tile[c * kPitch + my_n + 8 * i];
      }
      [[unroll]] for (uint m = 0; m < 4; ++m) {
        [[unroll]] for (uint n = 0; n < 4; ++n) of_tile[4 * m + n] += a[m] * b[n];
      }
    }
    [[unroll]] for (uint i = 0; i < 16; ++i) sums[i] += of_tile[i];
    barrier();
  }
  [[unroll]] for (uint m = 0; m < 4; ++m) {
    [[unroll]] for (uint n = 0; n < 4; ++n) {
      uint at = my_m + 8 * m, to = first + my_n + 8 * n;
      if (first_row + at < rows && to < push.n_outs) {
        put(row_of(first_row, at), to, sums[4 * m + n]);
      }
    }
  }
}
