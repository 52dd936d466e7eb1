// Declarations shared by the files of Int8Dot with sdot.
#pragma once

#include "kernels/cpu/int8_dot/int8_dot.h"
#include "kernels/cpu/int8_dot/neon.h"

// Clang before 16 has these intrinsics only in files compiled for dotprod.
#if defined(__aarch64__) && (!defined(__clang__) || __clang_major__ >= 16)
#define ARN_HAS_DOTPROD

#define ARN_DOTPROD __attribute__((target("arch=armv8.2-a+dotprod")))
#define ARN_DOTPROD_INLINE ARN_DOTPROD __attribute__((always_inline)) inline

namespace arn::cpu::dotprod {

constexpr uint32_t kLanes = 4;         // i32 or f32 lanes per vector
constexpr uint32_t kVectorBytes = 16;  // bytes per vector

// Implement the Int8Dot functions of the same names.
void ScoreRows(const DotQueries& queries, const int8_t* const* strips, uint32_t n_blocks,
               uint32_t dim, float* out);
void AddValueRows(const DotWeights& weights, const int8_t* const* strips, uint32_t n_quads,
                  uint32_t dim, size_t stride, float* sums);
void ScorePackedRows(const DotQueries& queries, const int8_t* const* strips, uint32_t n_blocks,
                     uint32_t row_bytes, uint32_t bits, float* out);
void AddPackedValueRows(const DotWeights& weights, const int8_t* const* strips, uint32_t n_quads,
                        uint32_t row_bytes, uint32_t bits, uint32_t channel, uint32_t n_channels,
                        size_t stride, float* sums);

}  // namespace arn::cpu::dotprod
#endif
