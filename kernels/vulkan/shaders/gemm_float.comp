#version 450
#extension GL_GOOGLE_include_directive : require
// kLinear, kLogits and kExperts for many rows, float weights. A workgroup computes one tile, DEPTH
// columns per iteration; the loads of the next iteration are issued before it multiplies.
#include "common.glsl"
#include "math.glsl"
#include "weights.glsl"
#include "linear.glsl"
#include "tile_rows.glsl"
#include "tile_lanes.glsl"

layout(constant_id = kMatmulDepthId) const uint DEPTH = 32;
layout(constant_id = kMatmulWholeId) const uint WHOLE = 0;  // cols is a multiple of 8
// Vectors of four columns per row of a tile, and from one row to the next in shared memory: odd, so
// that rows start in different banks.
const uint QUADS = DEPTH / 4, PITCH = QUADS + 1;
shared vec4 x_tile[TILE_M * PITCH];
shared vec4 w_tile[TILE_N * PITCH];

// 16 bytes of a weight row have one vector of f32, or two.
const uint VECTORS = TYPE == kTypeF32 ? 1 : 2, W_QUADS = QUADS / VECTORS;
const uint X_LOADS = (TILE_M * QUADS + WIDTH - 1) / WIDTH;
const uint W_LOADS = (TILE_N * W_QUADS + WIDTH - 1) / WIDTH;
vec4 next_x[X_LOADS];
uvec4 next_w[W_LOADS];

// Columns [c, c + 4) of an input row; zero after the last.
vec4 x_at(uint row, uint c) {
  uint at = push.in_at + row * push.cols + c;
  if (WHOLE == 1) return c < push.cols ? x_quads[at / 4] : vec4(0.0);
  return vec4(c < push.cols ? x[at] : 0.0, c + 1 < push.cols ? x[at + 1] : 0.0,
              c + 2 < push.cols ? x[at + 2] : 0.0, c + 3 < push.cols ? x[at + 3] : 0.0);
}

// Loads the columns from k on. Rows and outputs after the last repeat it, since what they add up to
// is not stored.
void fetch(uint first, uint first_row, uint rows, uint k) {
  [[unroll]] for (uint i = 0; i < X_LOADS; ++i) {
    uint at = gl_LocalInvocationIndex + i * WIDTH;
    uint row = input_row(row_of(first_row, min(at / QUADS, rows - 1 - first_row)));
    next_x[i] = x_at(row, k + 4 * (at % QUADS));
  }
  [[unroll]] for (uint i = 0; i < W_LOADS; ++i) {
    uint at = gl_LocalInvocationIndex + i * WIDTH;
    uint row = known_out(first, at / W_QUADS);
    uint quad = min(k / (4 * VECTORS) + at % W_QUADS, push.row_quads - 1);
    next_w[i] = weight_quads[weights_from() / 4 + row * push.row_quads + quad];
  }
}

// Writes what fetch() has loaded to shared memory.
void store_tiles() {
  [[unroll]] for (uint i = 0; i < X_LOADS; ++i) {
    uint at = gl_LocalInvocationIndex + i * WIDTH;
    if (at < TILE_M * QUADS) x_tile[at / QUADS * PITCH + at % QUADS] = next_x[i];
  }
  [[unroll]] for (uint i = 0; i < W_LOADS; ++i) {
    uint at = gl_LocalInvocationIndex + i * WIDTH;
    if (at >= TILE_N * W_QUADS) continue;
    uvec4 w = next_w[i];
    uint to = at / W_QUADS * PITCH + at % W_QUADS * VECTORS;
    if (TYPE == kTypeF32) {
      w_tile[to] = uintBitsToFloat(w);
    } else {
      w_tile[to] = vec4(pair_of(TYPE, w.x), pair_of(TYPE, w.y));
      w_tile[to + 1] = vec4(pair_of(TYPE, w.z), pair_of(TYPE, w.w));
    }
  }
}

void main() {
  uint lane = gl_LocalInvocationIndex, rows = find_rows();
  uint first = first_out(), first_row = tile_of_group().y * TILE_M;
  uint cols = first_row < rows ? push.cols : 0;
  uint my_n = lane % LANES_N, my_m = lane / LANES_N;
  float sums[PER_M * PER_N];
  [[unroll]] for (uint i = 0; i < PER_M * PER_N; ++i) sums[i] = 0.0;
  if (cols != 0) fetch(first, first_row, rows, 0);
  for (uint k = 0; k < cols; k += DEPTH) {
    store_tiles();
    barrier();
    if (k + DEPTH < cols) fetch(first, first_row, rows, k + DEPTH);
    // Partial sums of a few columns: a single running sum would accumulate more rounding error.
    float of_tile[PER_M * PER_N];
    [[unroll]] for (uint i = 0; i < PER_M * PER_N; ++i) of_tile[i] = 0.0;
    for (uint q = 0; q < QUADS; ++q) {
      vec4 a[PER_M], b[PER_N];
      [[unroll]] for (uint i = 0; i < PER_M; ++i) a[i] = x_tile[(my_m + LANES_M * i) * PITCH + q];
      [[unroll]] for (uint i = 0; i < PER_N; ++i) b[i] = w_tile[(my_n + LANES_N * i) * PITCH + q];
      [[unroll]] for (uint m = 0; m < PER_M; ++m) {
        [[unroll]] for (uint n = 0; n < PER_N; ++n) of_tile[PER_N * m + n] += dot(a[m], b[n]);
      }
    }
    [[unroll]] for (uint i = 0; i < PER_M * PER_N; ++i) sums[i] += of_tile[i];
    barrier();
  }
  [[unroll]] for (uint m = 0; m < PER_M; ++m) {
    [[unroll]] for (uint n = 0; n < PER_OUT; ++n) {
      uint at = my_m + LANES_M * m, to = first + my_n + LANES_N * n, i = PER_N * m + n;
      if (first_row + at < rows && to < n_written()) {
        put_activated(row_of(first_row, at), to, sums[i], sums[i + PER_N - PER_OUT]);
      }
    }
  }
}
