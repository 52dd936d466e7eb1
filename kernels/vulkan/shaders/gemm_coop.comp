#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
// gemm_int.comp with int8 cooperative matrices; sums are equally exact. A subgroup computes all
// rows of the tile for its share of the outputs. For int4, the sums of a block are scaled as f32
// matrices.
#define ARN_INTEGERS
#include "common.glsl"
#include "math.glsl"
#include "weights.glsl"
#include "linear.glsl"
#include "tile_rows.glsl"
#include "tile_words.glsl"

// Shape of a matrix: rows, outputs, and summed columns.
layout(constant_id = kMatmulCoopMId) const uint COOP_M = 8;
layout(constant_id = kMatmulCoopNId) const uint COOP_N = 8;
layout(constant_id = kMatmulCoopKId) const uint COOP_K = 8;
layout(constant_id = kMatmulSubgroupsId) const uint SUBGROUPS = 2;

const uint PER_M = TILE_M / COOP_M, SUBGROUP_N = TILE_N / SUBGROUPS, PER_N = SUBGROUP_N / COOP_N;
const uint COOP_WORDS = COOP_K / 4, COOPS = 4 * kDepth / COOP_K;
// Rows of shared memory are aligned to 16 bytes.
const uint kPitch = kDepth + 4, STRIP_PITCH = TILE_N + 4;
shared uint x_tile[TILE_M * kPitch];
shared uint w_tile[TILE_N * kPitch];
// COOP_M rows of the tile: strip for the output sums; scales for the outputs' scales, the same in
// each row.
shared int strip[COOP_M * STRIP_PITCH];
shared float scales[COOP_M * STRIP_PITCH];

#define ARN_SUMS(TYPE) coopmat<TYPE, gl_ScopeSubgroup, COOP_M, COOP_N, gl_MatrixUseAccumulator>

void main() {
  uint lane = gl_LocalInvocationIndex, rows = find_rows();
  uint first = gl_WorkGroupID.x * TILE_N, first_row = gl_WorkGroupID.y * TILE_M;
  uint words = first_row < rows ? push.x_words : 0;
  uint my_n = gl_SubgroupID * SUBGROUP_N;
  ARN_SUMS(int) sums[PER_M * PER_N];
  ARN_SUMS(float) block_sums[PER_M * PER_N];
  [[unroll]] for (uint i = 0; i < PER_M * PER_N; ++i) {
    sums[i] = ARN_SUMS(int)(0);
    if (TYPE == kTypeInt4) block_sums[i] = ARN_SUMS(float)(0.0);
  }
  for (uint k = 0; k < words; k += kDepth) {
    for (uint i = lane; i < TILE_M * kDepth; i += WIDTH) {
      uint word = i % kDepth, at = i / kDepth;
      x_tile[at * kPitch + word] = x_word(first_row, rows, at, k + word);
    }
    for (uint i = lane; i < TILE_N * kDepth; i += WIDTH) {
      uint word = i % kDepth, at = i / kDepth;
      w_tile[at * kPitch + word] = w_word(first, at, k + word);
    }
    for (uint i = lane; TYPE == kTypeInt4 && i < COOP_M * TILE_N; i += WIDTH) {
      scales[i / TILE_N * STRIP_PITCH + i % TILE_N] = tile_scale(first, i % TILE_N, k);
    }
    barrier();
    [[unroll]] for (uint c = 0; c < COOPS; ++c) {
      [[unroll]] for (uint n = 0; n < PER_N; ++n) {
        coopmat<int8_t, gl_ScopeSubgroup, COOP_K, COOP_N, gl_MatrixUseB> b;
        coopMatLoad(b, w_tile, (my_n + COOP_N * n) * kPitch + COOP_WORDS * c, kPitch,
                    gl_CooperativeMatrixLayoutColumnMajor);
        [[unroll]] for (uint m = 0; m < PER_M; ++m) {
          coopmat<int8_t, gl_ScopeSubgroup, COOP_M, COOP_K, gl_MatrixUseA> a;
          coopMatLoad(a, x_tile, COOP_M * m * kPitch + COOP_WORDS * c, kPitch,
                      gl_CooperativeMatrixLayoutRowMajor);
          sums[PER_N * m + n] = coopMatMulAdd(a, b, sums[PER_N * m + n]);
        }
      }
    }
    if (TYPE == kTypeInt4) {
      [[unroll]] for (uint n = 0; n < PER_N; ++n) {
        ARN_SUMS(float) scale;
        coopMatLoad(scale, scales, my_n + COOP_N * n, STRIP_PITCH,
                    gl_CooperativeMatrixLayoutRowMajor);
        [[unroll]] for (uint m = 0; m < PER_M; ++m) {
          block_sums[PER_N * m + n] += scale * ARN_SUMS(float)(sums[PER_N * m + n]);
          sums[PER_N * m + n] = ARN_SUMS(int)(0);
        }
      }
    }
    barrier();
  }
  // The element layout of a matrix is implementation-defined: stores go through shared memory.
  [[unroll]] for (uint m = 0; m < PER_M; ++m) {
    [[unroll]] for (uint n = 0; n < PER_N; ++n) {
      if (TYPE == kTypeInt4) {
        coopMatStore(block_sums[PER_N * m + n], scales, my_n + COOP_N * n, STRIP_PITCH,
                     gl_CooperativeMatrixLayoutRowMajor);
      } else {
        coopMatStore(sums[PER_N * m + n], strip, my_n + COOP_N * n, STRIP_PITCH,
                     gl_CooperativeMatrixLayoutRowMajor);
      }
    }
    barrier();
    for (uint i = lane; i < COOP_M * TILE_N; i += WIDTH) {
      uint at = COOP_M * m + i / TILE_N, to = first + i % TILE_N;
      uint from = i / TILE_N * STRIP_PITCH + i % TILE_N;
      if (first_row + at < rows && to < push.n_outs) {
        uint row = row_of(first_row, at);
        float sum = TYPE == kTypeInt4 ? scales[from] : float(strip[from] - zero_part(row, to));
        put(row, to, scaled(row, to, sum));
      }
    }
    barrier();
  }
}
