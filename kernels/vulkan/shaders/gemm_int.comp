#version 450
#extension GL_GOOGLE_include_directive : require
// kLinear, kLogits and kExperts for many rows, int8 and int4 weights times quantised rows. A
// workgroup computes one tile.
#define ARN_INTEGERS
#include "common.glsl"
#include "math.glsl"
#include "weights.glsl"
#include "linear.glsl"
#include "tile_rows.glsl"
#include "tile_lanes.glsl"
#include "tile_words.glsl"

shared float scale_tile[TILE_N * BLOCKS];

float sum_of(int sum, float block_sum, uint row, uint out_row) {
  return TYPE == kTypeInt4 ? block_sum : float(sum - zero_part(row, out_row));
}

void main() {
  uint lane = gl_LocalInvocationIndex, rows = find_rows();
  uint first = first_out(), first_row = tile_of_group().y * TILE_M;
  uint n_blocks = first_row < rows ? push.x_words / kBlockWords : 0;
  uint my_n = lane % LANES_N, my_m = lane / LANES_N;
  int sums[PER_M * PER_N];
  float block_sums[PER_M * PER_N];
  [[unroll]] for (uint i = 0; i < PER_M * PER_N; ++i) {
    sums[i] = 0;
    block_sums[i] = 0.0;
  }
  if (n_blocks != 0) fetch(first, first_row, rows, 0);
  for (uint block = 0; block < n_blocks; block += BLOCKS) {
    store_stage();
    for (uint i = lane; TYPE == kTypeInt4 && i < TILE_N * BLOCKS; i += WIDTH) {
      scale_tile[i] = tile_scale(first, i % TILE_N, block + i / TILE_N);
    }
    barrier();
    if (block + BLOCKS < n_blocks) fetch(first, first_row, rows, block + BLOCKS);
    [[unroll]] for (uint q = 0; q < STAGE_QUADS; ++q) {
      uvec4 a[PER_M], b[PER_N];
      [[unroll]] for (uint i = 0; i < PER_M; ++i) a[i] = tiles[(my_m + LANES_M * i) * PITCH + q];
      [[unroll]] for (uint i = 0; i < PER_N; ++i) {
        b[i] = tiles[W_TILE + (my_n + LANES_N * i) * PITCH + q];
      }
      [[unroll]] for (uint m = 0; m < PER_M; ++m) {
        [[unroll]] for (uint n = 0; n < PER_N; ++n) sums[PER_N * m + n] += dot16(a[m], b[n]);
      }
      if (TYPE == kTypeInt4 && q % 2 == 1) {
        [[unroll]] for (uint i = 0; i < PER_M * PER_N; ++i) {
          uint n = q / 2 * TILE_N + my_n + LANES_N * (i % PER_N);
          block_sums[i] += scale_tile[n] * float(sums[i]);
          sums[i] = 0;
        }
      }
    }
    barrier();
  }
  [[unroll]] for (uint m = 0; m < PER_M; ++m) {
    [[unroll]] for (uint n = 0; n < PER_OUT; ++n) {
      uint at = my_m + LANES_M * m, to = first + my_n + LANES_N * n;
      if (first_row + at < rows && to < n_written()) {
        uint row = row_of(first_row, at), i = PER_N * m + n, next = i + PER_N - PER_OUT;
        float up_sum = 0.0;
        if (PER_OUT != PER_N) {
          uint up = to + n_written();
          up_sum = scaled(row, up, sum_of(sums[next], block_sums[next], row, up));
        }
        float sum = sum_of(sums[i], block_sums[i], row, to);
        put_activated(row, to, scaled(row, to, sum), up_sum);
      }
    }
  }
}
