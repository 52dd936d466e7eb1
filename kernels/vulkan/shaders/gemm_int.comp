#version 450
#extension GL_GOOGLE_include_directive : require
// kLinear, kLogits and kExperts for many rows, int8 and int4 weights times quantised rows. Tiles as
// in gemm_float.comp, four columns a word; 32 columns are a block of int4.
#define ARN_INTEGERS
#include "common.glsl"
#include "push.glsl"
#include "math.glsl"
#include "weights.glsl"
#include "linear.glsl"
#include "tile_rows.glsl"

const uint kDepth = 8, kPitch = kTile + 1;
shared uint x_tile[kDepth * kPitch];
shared uint w_tile[kDepth * kPitch];
shared float scale_tile[kTile];

// Word `word` of four columns of output n.
uint w_at(uint n, uint word) {
  uint base = weights_from() + n * push.row_quads * 4;
  if (TYPE == kInt8) return weight_words[base + word];
  uint both = weight_words[base + word / 2];
  return (word & 1u) == 0u ? low_halves(both) : high_halves(both);
}

void main() {
  uint lane = gl_LocalInvocationIndex, rows = find_rows();
  uint first = gl_WorkGroupID.x * kTile, first_row = gl_WorkGroupID.y * kTile;
  uint words = first_row < rows ? push.x_words : 0;
  uint my_n = lane % 8, my_m = lane / 8;
  int sums[16];
  float block_sums[16];
  for (uint i = 0; i < 16; ++i) {
    sums[i] = 0;
    block_sums[i] = 0.0;
  }
  for (uint k = 0; k < words; k += kDepth) {
    for (uint i = lane; i < kTile * kDepth; i += WIDTH) {
      uint word = i % kDepth, at = i / kDepth;
      bool in_row = k + word < words;
      bool has_x = in_row && first_row + at < rows, has_w = in_row && first + at < push.n_outs;
      uint from = push.extra_at + push.values_at + k + word;
      x_tile[word * kPitch + at] =
          has_x ? quantized[from + input_row(row_of(first_row, at)) * push.x_words] : 0u;
      w_tile[word * kPitch + at] = has_w ? w_at(first + at, k + word) : 0u;
    }
    if (TYPE == kInt4 && lane < kTile) {
      uint n = min(first + lane, push.n_outs - 1);
      scale_tile[lane] = block_scale(n, k / kDepth);
    }
    barrier();
    for (uint c = 0; c < kDepth; ++c) {
      uint a[4], b[4];
      [[unroll]] for (uint i = 0; i < 4; ++i) {
        a[i] = x_tile[c * kPitch + my_m + 8 * i];
        b[i] = w_tile[c * kPitch + my_n + 8 * i];
      }
      [[unroll]] for (uint m = 0; m < 4; ++m) {
        [[unroll]] for (uint n = 0; n < 4; ++n) sums[4 * m + n] += dot4(a[m], b[n]);
      }
    }
    if (TYPE == kInt4) {
      [[unroll]] for (uint i = 0; i < 16; ++i) {
        block_sums[i] += scale_tile[my_n + 8 * (i % 4)] * float(sums[i]);
        sums[i] = 0;
      }
    }
    barrier();
  }
  [[unroll]] for (uint m = 0; m < 4; ++m) {
    [[unroll]] for (uint n = 0; n < 4; ++n) {
      uint at = my_m + 8 * m, to = first + my_n + 8 * n;
      if (first_row + at < rows && to < push.n_outs) {
        uint row = row_of(first_row, at);
        float sum = TYPE == kInt4 ? block_sums[4 * m + n]
                                  : float(sums[4 * m + n] - zero_part(row, to));
        put(row, to, scaled(row, to, sum));
      }
    }
  }
}
