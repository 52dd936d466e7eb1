#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
// gemm_float.comp with products in f16, for f16 and bf16 weights. DEPTH columns are a block: in it
// each row of inputs and of weights is scaled by a power of two, so that its largest element is in
// [16, 32). An invocation adds a block's even and odd columns in f16, and the block's sum to one in
// f32. So nothing overflows: a sum of 16 products is below 16 * 32 * 32 = 2^14. The bound of the
// error is derived in docs/decisions/0023-products-in-f16.md.
#include "common.glsl"
#include "math.glsl"
#include "weights.glsl"
#include "linear.glsl"
#include "tile_rows.glsl"
#include "tile_lanes.glsl"

layout(constant_id = kMatmulWholeId) const uint WHOLE = 0;  // cols is a multiple of 8
// In shared memory a quad has four columns, as words of two. From one row to the next: odd, so that
// rows start in different banks.
const uint DEPTH = kHalfBlock, QUADS = DEPTH / 4, PITCH = QUADS + 1;
shared uvec2 x_tile[TILE_M * PITCH];
shared uvec2 w_tile[TILE_N * PITCH];
// The largest magnitude of each row of a block, as the bits of an f32: of this block and the next,
// in turn.
shared uint x_peaks[2 * TILE_M], w_peaks[2 * TILE_N];

// A quad of x is 16 bytes; 16 bytes of a weight row have two.
const uint W_QUADS = QUADS / 2;
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

// As in gemm_float.comp.
void fetch(uint first, uint first_row, uint rows, uint k) {
  [[unroll]] for (uint i = 0; i < X_LOADS; ++i) {
    uint at = gl_LocalInvocationIndex + i * WIDTH;
    uint row = input_row(row_of(first_row, min(at / QUADS, rows - 1 - first_row)));
    next_x[i] = x_at(row, k + 4 * (at % QUADS));
  }
  [[unroll]] for (uint i = 0; i < W_LOADS; ++i) {
    uint at = gl_LocalInvocationIndex + i * WIDTH;
    uint row = known_out(first, at / W_QUADS);
    uint quad = min(k / 8 + at % W_QUADS, push.row_quads - 1);
    next_w[i] = weight_quads[weights_from() / 4 + row * push.row_quads + quad];
  }
}

vec4 low_of(uvec4 w) { return vec4(pair_of(TYPE, w.x), pair_of(TYPE, w.y)); }
vec4 high_of(uvec4 w) { return vec4(pair_of(TYPE, w.z), pair_of(TYPE, w.w)); }
uint peak_of(vec4 v) {
  vec4 size = abs(v);
  return floatBitsToUint(max(max(size.x, size.y), max(size.z, size.w)));
}

void clear_peaks(uint turn) {
  for (uint i = gl_LocalInvocationIndex; i < TILE_M; i += WIDTH) x_peaks[turn * TILE_M + i] = 0;
  for (uint i = gl_LocalInvocationIndex; i < TILE_N; i += WIDTH) w_peaks[turn * TILE_N + i] = 0;
}

// Finds the largest magnitudes of what fetch() has loaded.
void find_peaks(uint turn) {
  [[unroll]] for (uint i = 0; i < X_LOADS; ++i) {
    uint at = gl_LocalInvocationIndex + i * WIDTH;
    if (at < TILE_M * QUADS) atomicMax(x_peaks[turn * TILE_M + at / QUADS], peak_of(next_x[i]));
  }
  [[unroll]] for (uint i = 0; i < W_LOADS; ++i) {
    uint at = gl_LocalInvocationIndex + i * WIDTH;
    if (at >= TILE_N * W_QUADS) continue;
    uint peak = max(peak_of(low_of(next_w[i])), peak_of(high_of(next_w[i])));
    atomicMax(w_peaks[turn * TILE_N + at / W_QUADS], peak);
  }
}

// The power of two that brings a peak into [16, 32), and its inverse. Both are normal numbers, for
// which peaks below 2^-122 stay smaller.
uint exponent_of(uint peak) { return clamp(peak >> 23, 5, 254); }
float scale_of(uint peak) { return uintBitsToFloat((258 - exponent_of(peak)) << 23); }
float inverse_of(uint peak) { return uintBitsToFloat((exponent_of(peak) - 4) << 23); }

uvec2 halves_of(vec4 v) {
  return uvec2(packFloat2x16(f16vec2(v.xy)), packFloat2x16(f16vec2(v.zw)));
}

// Writes what fetch() has loaded to shared memory.
void store_tiles(uint turn) {
  [[unroll]] for (uint i = 0; i < X_LOADS; ++i) {
    uint at = gl_LocalInvocationIndex + i * WIDTH;
    if (at >= TILE_M * QUADS) continue;
    float scale = scale_of(x_peaks[turn * TILE_M + at / QUADS]);
    x_tile[at / QUADS * PITCH + at % QUADS] = halves_of(next_x[i] * scale);
  }
  [[unroll]] for (uint i = 0; i < W_LOADS; ++i) {
    uint at = gl_LocalInvocationIndex + i * WIDTH;
    if (at >= TILE_N * W_QUADS) continue;
    float scale = scale_of(w_peaks[turn * TILE_N + at / W_QUADS]);
    uint to = at / W_QUADS * PITCH + at % W_QUADS * 2;
    w_tile[to] = halves_of(low_of(next_w[i]) * scale);
    w_tile[to + 1] = halves_of(high_of(next_w[i]) * scale);
  }
}

float total_of(f16vec2 pair) {
  vec2 wide = vec2(pair);
  return wide.x + wide.y;
}

void main() {
  uint lane = gl_LocalInvocationIndex, rows = find_rows();
  uint first = first_out(), first_row = tile_of_group().y * TILE_M;
  uint cols = first_row < rows ? push.cols : 0;
  uint my_n = lane % LANES_N, my_m = lane / LANES_N;
  // Outputs in fours (PER_N is a multiple of four).
  vec4 sums[PER_M * PER_N / 4];
  [[unroll]] for (uint i = 0; i < PER_M * PER_N / 4; ++i) sums[i] = vec4(0.0);
  clear_peaks(0);
  barrier();
  if (cols != 0) {
    fetch(first, first_row, rows, 0);
    find_peaks(0);
  }
  barrier();
  uint turn = 0;
  for (uint k = 0; k < cols; k += DEPTH) {
    store_tiles(turn);
    clear_peaks(1 - turn);
    barrier();
    if (k + DEPTH < cols) fetch(first, first_row, rows, k + DEPTH);
    f16vec2 of_block[PER_M * PER_N];
    [[unroll]] for (uint i = 0; i < PER_M * PER_N; ++i) of_block[i] = f16vec2(0.0);
    [[unroll]] for (uint q = 0; q < QUADS; ++q) {
      uvec2 a[PER_M], b[PER_N];
      [[unroll]] for (uint i = 0; i < PER_M; ++i) a[i] = x_tile[(my_m + LANES_M * i) * PITCH + q];
      [[unroll]] for (uint i = 0; i < PER_N; ++i) b[i] = w_tile[(my_n + LANES_N * i) * PITCH + q];
      [[unroll]] for (uint m = 0; m < PER_M; ++m) {
        [[unroll]] for (uint n = 0; n < PER_N; ++n) {
          const uint i = PER_N * m + n;
          of_block[i] = fma(unpackFloat2x16(a[m].x), unpackFloat2x16(b[n].x), of_block[i]);
          of_block[i] = fma(unpackFloat2x16(a[m].y), unpackFloat2x16(b[n].y), of_block[i]);
        }
      }
    }
    [[unroll]] for (uint m = 0; m < PER_M; ++m) {
      float of_x = inverse_of(x_peaks[turn * TILE_M + my_m + LANES_M * m]);
      [[unroll]] for (uint n = 0; n < PER_N / 4; ++n) {
        vec4 found, of_w;
        [[unroll]] for (uint j = 0; j < 4; ++j) {
          found[j] = total_of(of_block[PER_N * m + 4 * n + j]) * of_x;
          of_w[j] = inverse_of(w_peaks[turn * TILE_N + my_n + LANES_N * (4 * n + j)]);
        }
        sums[m * PER_N / 4 + n] = fma(found, of_w, sums[m * PER_N / 4 + n]);
      }
    }
    turn = 1 - turn;
    if (k + DEPTH < cols) find_peaks(turn);
    barrier();
  }
  [[unroll]] for (uint m = 0; m < PER_M; ++m) {
    [[unroll]] for (uint n = 0; n < PER_OUT; ++n) {
      uint at = my_m + LANES_M * m, to = first + my_n + LANES_N * n;
      uint i = PER_N * m + n, next = i + PER_N - PER_OUT;
      if (first_row + at < rows && to < n_written()) {
        put_activated(row_of(first_row, at), to, sums[i / 4][i % 4], sums[next / 4][next % 4]);
      }
    }
  }
}
