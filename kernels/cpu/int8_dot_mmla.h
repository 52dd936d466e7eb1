// What the files of Int8Dot with ARM's products of matrices of bytes share (i8mm: smmla multiplies
// two rows of eight bytes by two others). One side is a query's high bytes and its low bytes, or
// those of the weights of one, so that an instruction serves both planes; the other two tokens, or
// channels. A tile lies in pairs of such rows, 16 bytes each, eight pairs a step:
//   keys    [blocks of 16 tokens][eights of channels][8 pairs of tokens][2][8 channels]
//   values  [eights of tokens][eights of channels][4 pairs of channels][2][8 tokens]
#pragma once

#include "kernels/cpu/int8_dot.h"

// Clang before version 16 has these instructions in files that are compiled for them only. The
// smallest library goes without.
#if defined(__aarch64__) && !defined(ARN_SMALL_CODE) && \
    (!defined(__clang__) || __clang_major__ >= 16)
#define ARN_HAS_MMLA

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>

#include "kernels/program.h"
#include "platform/base/arith.h"

namespace arn::cpu::mmla {

constexpr uint32_t kEight = 8;
constexpr uint32_t kPairBytes = 2 * kEight;
constexpr uint32_t kPairs = kDotBlock / 2;
constexpr uint32_t kStepBytes = kPairs * kPairBytes;
// Queries that share what is loaded of a tile.
constexpr uint32_t kSharing = 2;
// The largest weight that two signed bytes hold: 127 * 256 + 127.
constexpr int32_t kWeightMax = 32639;

constexpr uint32_t Eights(uint32_t n) { return static_cast<uint32_t>(CeilDiv(n, kEight)); }

// Int8Dot's pack_keys and pack_values.
void PackKeys(const int8_t* const* strips, uint32_t n_blocks, uint32_t dim, uint8_t* out);
void PackValues(const int8_t* const* strips, uint32_t n_quads, uint32_t dim, uint8_t* out);

// Of each query the eights of its planes, in pairs: high, low.
struct Planes {
  alignas(kPairBytes) int8_t bytes[kSharing][2 * kMaxHeadDim];

  void Set(uint32_t query, const void* high, const void* low, uint32_t eights) {
    const auto* h = static_cast<const int8_t*>(high);
    const auto* l = static_cast<const int8_t*>(low);
    for (uint32_t i = 0; i < eights; ++i) {
      const int8x16_t pair = vcombine_s8(vld1_s8(h + i * kEight), vld1_s8(l + i * kEight));
      vst1q_s8(bytes[query] + i * kPairBytes, pair);
    }
  }
};

// Steps [n], `stride` bytes from one to the next.
struct Steps {
  const uint8_t* at;
  size_t stride;
  uint32_t n;
};

// Int8Dot's scores and add_values, with what sums steps up:
//   Kernel::Scores(n, planes, steps, out)
//     out[query * kDotTokens + token] of n queries and 16 tokens
//   Kernel::AddValues(n, planes, steps, factors, stride, out)
//     out[query * stride + channel] += factors[query] * sum, of n queries and 16 channels
template <typename Kernel>
void Scores(const DotQueries& queries, const uint8_t* keys, uint32_t n_blocks, uint32_t dim,
            float* out) {
  const uint32_t eights = Eights(dim);
  Planes planes;
  for (uint32_t q = 0; q < queries.n; q += kSharing) {
    const uint32_t n = Min(queries.n - q, kSharing);
    for (uint32_t i = 0; i < n; ++i) {
      const size_t at = (q + i) * queries.stride;
      planes.Set(i, queries.high + at, queries.low + at, eights);
    }
    for (uint32_t block = 0; block < n_blocks; ++block) {
      const Steps steps = {keys + size_t{block} * eights * kStepBytes, kStepBytes, eights};
      Kernel::Scores(n, planes, steps, out + q * kDotTokens + block * kDotBlock);
    }
  }
}

template <typename Kernel>
void AddValues(const DotWeights& weights, const uint8_t* values, uint32_t n_quads, uint32_t dim,
               size_t stride, float* sums) {
  const uint32_t eights = Eights(4 * n_quads), width = DotValueWidth(dim);
  Planes planes;
  for (uint32_t q = 0; q < weights.n; q += kSharing) {
    const uint32_t n = Min(weights.n - q, kSharing);
    for (uint32_t i = 0; i < n; ++i) {
      const size_t at = (q + i) * kDotTokens;
      planes.Set(i, weights.high + at, weights.low + at, eights);
    }
    for (uint32_t channel = 0; channel < width; channel += kDotBlock) {
      const Steps steps = {values + channel * kEight, size_t{width} * kEight, eights};
      Kernel::AddValues(n, planes, steps, weights.factors + q, stride, sums + q * stride + channel);
    }
  }
}

template <typename Kernel>
constexpr Int8Dot Table() {
  return {PackKeys,   PackValues, Scores<Kernel>, AddValues<Kernel>, nullptr, nullptr, nullptr,
          kWeightMax, true,       kEight};
}

}  // namespace arn::cpu::mmla
#endif
