// Code shared by the files of Int8Dot with AVX512-VNNI.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/int8_dot/int8_dot.h"
#include "kernels/cpu/vnni.h"

namespace arn::cpu::vnni {

constexpr uint32_t kLanes = 16;        // i32 or f32 lanes per vector
constexpr uint32_t kVectorBytes = 64;  // bytes per vector
// Added to keys, because vpdpbusd multiplies unsigned by signed bytes. Each sum subtracts it again.
constexpr int32_t kKeyBias = 128;

ARN_VNNI_INLINE __m512i LoadRow(const int8_t* row, uint32_t first, uint32_t dim) {
  const uint32_t left = dim - first;
  const __mmask64 there = left >= kVectorBytes ? ~__mmask64{0} : (__mmask64{1} << left) - 1;
  return _mm512_maskz_loadu_epi8(there, row + first);
}

// Broadcasts four bytes to all lanes.
ARN_VNNI_INLINE __m512i Quad(const uint8_t* bytes) {
  int32_t quad;
  __builtin_memcpy(&quad, bytes, sizeof(quad));
  return _mm512_set1_epi32(quad);
}

// Implement the functions of Int8Dot that multiply rows in place.
void SpreadQueries(const DotQueries& queries, uint32_t dim);
void ScoreRows(const DotQueries& queries, const int8_t* const* strips, uint32_t n_blocks,
               uint32_t dim, float* out);
void AddValueRows(const DotWeights& weights, const int8_t* const* strips, uint32_t n_quads,
                  uint32_t dim, size_t stride, float* sums);
void ScorePackedRows(const DotQueries& queries, const int8_t* const* strips, uint32_t n_blocks,
                     uint32_t row_bytes, uint32_t bits, float* out);
void AddPackedValueRows(const DotWeights& weights, const int8_t* const* strips, uint32_t n_quads,
                        uint32_t row_bytes, uint32_t bits, uint32_t channel, uint32_t n_channels,
                        size_t stride, float* sums);

}  // namespace arn::cpu::vnni
#endif
