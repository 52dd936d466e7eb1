#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
// gemm_int.comp with int8 cooperative matrices; sums are equally exact. The subgroups share the
// tile, SUBGROUPS_N of them along the outputs. For int4, the sums of a block are scaled as f32
// matrices.
#define ARN_INTEGERS
#define ARN_COOP
#include "common.glsl"
#include "math.glsl"
#include "weights.glsl"
#include "linear.glsl"

// Shape of a matrix: rows, outputs, and summed columns.
layout(constant_id = kMatmulCoopMId) const uint COOP_M = 8;
layout(constant_id = kMatmulCoopNId) const uint COOP_N = 8;
layout(constant_id = kMatmulCoopKId) const uint COOP_K = 8;
#include "tile_rows.glsl"
#include "tile_words.glsl"

layout(constant_id = kMatmulSubgroupsId) const uint SUBGROUPS = 2;
layout(constant_id = kMatmulSubgroupsNId) const uint SUBGROUPS_N = 2;

const uint SUBGROUP_M = TILE_M / (SUBGROUPS / SUBGROUPS_N), SUBGROUP_N = TILE_N / SUBGROUPS_N;
const uint PER_M = SUBGROUP_M / COOP_M, PER_N = SUBGROUP_N / COOP_N;
const uint COOPS = 4 * kBlockWords / COOP_K;
// Outputs written per matrix of sums. With gate/up pairs, its other half are the ups.
const uint OUTS = ACTIVATES == kActivatesPairs ? COOP_N / 2 : COOP_N;

// Scales of the outputs for each block, the same in COOP_M rows.
const uint SCALE_PITCH = TILE_N + 4;
// Shared arrays are multiples of 16 bytes long: drivers place one after another, and matrices must
// start at multiples of 16 bytes.
shared float scales[TYPE == kTypeInt4 ? COOP_M * SCALE_PITCH * BLOCKS : 4];
// A matrix of each subgroup, to store its elements, in `tiles`.
const uint STRIP_PITCH = COOP_N + 4, STRIP = COOP_M * STRIP_PITCH;

#define ARN_SUMS(TYPE) coopmat<TYPE, gl_ScopeSubgroup, COOP_M, COOP_N, gl_MatrixUseAccumulator>

void store_scales(uint first, uint block) {
  const uint lanes = min(WIDTH, TILE_N);
  for (uint b = 0; b < BLOCKS; ++b) {
    for (uint n = gl_LocalInvocationIndex % lanes; n < TILE_N; n += lanes) {
      float scale = tile_scale(first, n, block + b);
      for (uint m = gl_LocalInvocationIndex / lanes; m < COOP_M; m += WIDTH / lanes) {
        scales[(b * COOP_M + m) * SCALE_PITCH + n] = scale;
      }
    }
  }
}

// The scaled sum of an output, whose element of the strip is at `from`.
float sum_at(uint from, uint row, uint out_row) {
  float sum = TYPE == kTypeInt4 ? uintBitsToFloat(tiles[from])
                                : float(int(tiles[from]) - zero_part(row, out_row));
  return scaled(row, out_row, sum);
}

void main() {
  uint lane = gl_LocalInvocationIndex, rows = find_rows();
  uint first = first_out(), first_row = tile_of_group().y * TILE_M;
  uint n_blocks = first_row < rows ? push.x_words / kBlockWords : 0;
  uint my_n = gl_SubgroupID % SUBGROUPS_N * SUBGROUP_N;
  uint my_m = gl_SubgroupID / SUBGROUPS_N * SUBGROUP_M;
  ARN_SUMS(int) sums[PER_M * PER_N];
  ARN_SUMS(float) block_sums[PER_M * PER_N];
  [[unroll]] for (uint i = 0; i < PER_M * PER_N; ++i) {
    sums[i] = ARN_SUMS(int)(0);
    if (TYPE == kTypeInt4) block_sums[i] = ARN_SUMS(float)(0.0);
  }
  if (n_blocks != 0) fetch(first, first_row, rows, 0);
  for (uint block = 0; block < n_blocks; block += BLOCKS) {
    store_stage();
    if (TYPE == kTypeInt4) store_scales(first, block);
    barrier();
    if (block + BLOCKS < n_blocks) fetch(first, first_row, rows, block + BLOCKS);
    [[unroll]] for (uint b = 0; b < BLOCKS; ++b) {
      [[unroll]] for (uint c = 0; c < COOPS; ++c) {
        const uint word = b * kBlockWords + c * (COOP_K / 4);
        coopmat<int8_t, gl_ScopeSubgroup, COOP_M, COOP_K, gl_MatrixUseA> a[PER_M];
        [[unroll]] for (uint m = 0; m < PER_M; ++m) {
          coopMatLoad(a[m], tiles, (my_m + COOP_M * m) * PITCH * 4 + word, PITCH * 4,
                      gl_CooperativeMatrixLayoutRowMajor);
        }
        [[unroll]] for (uint n = 0; n < PER_N; ++n) {
          coopmat<int8_t, gl_ScopeSubgroup, COOP_K, COOP_N, gl_MatrixUseB> w;
          coopMatLoad(w, tiles, (W_TILE + (my_n + COOP_N * n) * PITCH) * 4 + word, PITCH * 4,
                      gl_CooperativeMatrixLayoutColumnMajor);
          [[unroll]] for (uint m = 0; m < PER_M; ++m) {
            sums[PER_N * m + n] = coopMatMulAdd(a[m], w, sums[PER_N * m + n]);
          }
        }
      }
      if (TYPE != kTypeInt4) continue;
      [[unroll]] for (uint n = 0; n < PER_N; ++n) {
        ARN_SUMS(float) scale;
        coopMatLoad(scale, scales, b * COOP_M * SCALE_PITCH + my_n + COOP_N * n, SCALE_PITCH,
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
  const uint lanes = WIDTH / SUBGROUPS;
  uint strip = gl_SubgroupID * STRIP;
  [[unroll]] for (uint m = 0; m < PER_M; ++m) {
    [[unroll]] for (uint n = 0; n < PER_N; ++n) {
      if (TYPE == kTypeInt4) {
        coopMatStore(block_sums[PER_N * m + n], tiles, strip, STRIP_PITCH,
                     gl_CooperativeMatrixLayoutRowMajor);
      } else {
        coopMatStore(sums[PER_N * m + n], tiles, strip, STRIP_PITCH,
                     gl_CooperativeMatrixLayoutRowMajor);
      }
      subgroupBarrier();
      for (uint i = lane % lanes; i < COOP_M * OUTS; i += lanes) {
        uint at = my_m + COOP_M * m + i / OUTS;
        uint to = first + (my_n + COOP_N * n) / (COOP_N / OUTS) + i % OUTS;
        uint from = strip + i / OUTS * STRIP_PITCH + i % OUTS;
        if (first_row + at < rows && to < n_written()) {
          uint row = row_of(first_row, at);
          float up_sum = OUTS == COOP_N ? 0.0 : sum_at(from + OUTS, row, to + n_written());
          put_activated(row, to, sum_at(from, row, to), up_sum);
        }
      }
      subgroupBarrier();
    }
  }
}
