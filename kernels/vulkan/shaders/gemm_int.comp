#version 450
#extension GL_GOOGLE_include_directive : require
// kLinear, kLogits and kExperts for many rows, int8 and int4 weights times quantised rows. Tiles as
// in gemm_float.comp, four columns per word; 32 columns are one int4 block.
#define ARN_INTEGERS
#include "common.glsl"
#include "math.glsl"
#include "weights.glsl"
#include "linear.glsl"
#include "tile_rows.glsl"
#include "tile_lanes.glsl"
#include "tile_words.glsl"

const uint X_PITCH = TILE_M + 1, W_PITCH = TILE_N + 1;
shared uint x_tile[kDepth * X_PITCH];
shared uint w_tile[kDepth * W_PITCH];
shared float scale_tile[TILE_N];

void main() {
  uint lane = gl_LocalInvocationIndex, rows = find_rows();
  uint first = gl_WorkGroupID.x * TILE_N, first_row = gl_WorkGroupID.y * TILE_M;
  uint words = first_row < rows ? push.x_words : 0;
  uint my_n = lane % LANES_N, my_m = lane / LANES_N;
  int sums[PER_M * PER_N];
  float block_sums[PER_M * PER_N];
  for (uint i = 0; i < PER_M * PER_N; ++i) {
    sums[i] = 0;
    block_sums[i] = 0.0;
  }
  for (uint k = 0; k < words; k += kDepth) {
    for (uint i = lane; i < TILE_M * kDepth; i += WIDTH) {
      uint word = i % kDepth, at = i / kDepth;
      x_tile[word * X_PITCH + at] = x_word(first_row, rows, at, k + word);
    }
    for (uint i = lane; i < TILE_N * kDepth; i += WIDTH) {
      uint word = i % kDepth, at = i / kDepth;
      w_tile[word * W_PITCH + at] = w_word(first, at, k + word);
    }
    for (uint i = lane; TYPE == kTypeInt4 && i < TILE_N; i += WIDTH) {
      scale_tile[i] = tile_scale(first, i, k);
    }
    barrier();
    for (uint c = 0; c < kDepth; ++c) {
      uint a[PER_M], b[PER_N];
      [[unroll]] for (uint i = 0; i < PER_M; ++i) a[i] = x_tile[c * X_PITCH + my_m + LANES_M * i];
      [[unroll]] for (uint i = 0; i < PER_N; ++i) b[i] = w_tile[c * W_PITCH + my_n + LANES_N * i];
      [[unroll]] for (uint m = 0; m < PER_M; ++m) {
        [[unroll]] for (uint n = 0; n < PER_N; ++n) sums[PER_N * m + n] += dot4(a[m], b[n]);
      }
    }
    if (TYPE == kTypeInt4) {
      [[unroll]] for (uint i = 0; i < PER_M * PER_N; ++i) {
        block_sums[i] += scale_tile[my_n + LANES_N * (i % PER_N)] * float(sums[i]);
        sums[i] = 0;
      }
    }
    barrier();
  }
  [[unroll]] for (uint m = 0; m < PER_M; ++m) {
    [[unroll]] for (uint n = 0; n < PER_N; ++n) {
      uint at = my_m + LANES_M * m, to = first + my_n + LANES_N * n;
      if (first_row + at < rows && to < push.n_outs) {
        uint row = row_of(first_row, at);
        float sum = TYPE == kTypeInt4 ? block_sums[PER_N * m + n]
                                  : float(sums[PER_N * m + n] - zero_part(row, to));
        put(row, to, scaled(row, to, sum));
      }
    }
  }
}
