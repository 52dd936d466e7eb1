// Int8Dot in plain loops, in the summation orders of its implementations: kUnit 4 and kBias 128 for
// VNNI, 8 and 0 for ARM i8mm. Tests the integer path of CPU attention on machines without these
// instructions.
#pragma once

#include "kernels/cpu/int8_dot/int8_dot.h"

namespace arn::conformance {

template <uint32_t kUnit, uint8_t kBias, bool kSigned>
struct ScalarDot {
  // Returns number i of two byte planes.
  static int64_t Number(const void* high, const void* low, size_t i, bool is_signed) {
    const auto h = static_cast<const uint8_t*>(high)[i], l = static_cast<const uint8_t*>(low)[i];
    return is_signed ? 256 * static_cast<int8_t>(h) + static_cast<int8_t>(l) : 256 * h + l;
  }

  static void PackKeys(const int8_t* const* strips, uint32_t n_blocks, uint32_t dim, uint8_t* out) {
    for (uint32_t block = 0; block < n_blocks; ++block) {
      for (uint32_t first = 0; first < dim; first += kUnit) {
        for (uint32_t t = 0; t < cpu::kDotBlock; ++t) {
          const int8_t* row = cpu::DotRow(strips, block * cpu::kDotBlock + t, dim);
          for (uint32_t i = first; i < first + kUnit; ++i) {
            *out++ = static_cast<uint8_t>((i < dim ? row[i] : 0) ^ kBias);
          }
        }
      }
    }
  }
  static void PackValues(const int8_t* const* strips, uint32_t n_quads, uint32_t dim,
                         uint8_t* out) {
    for (uint32_t first = 0; first < 4 * n_quads; first += kUnit) {
      for (uint32_t i = 0; i < cpu::DotValueWidth(dim); ++i) {
        for (uint32_t t = first; t < first + kUnit; ++t) {
          *out++ = static_cast<uint8_t>(i < dim ? cpu::DotRow(strips, t, dim)[i] : 0);
        }
      }
    }
  }
  static void Scores(const cpu::DotQueries& queries, const uint8_t* keys, uint32_t n_blocks,
                     uint32_t dim, float* out) {
    const auto width = static_cast<uint32_t>(AlignUp(dim, kUnit));
    for (uint32_t q = 0; q < queries.n; ++q) {
      for (uint32_t t = 0; t < n_blocks * cpu::kDotBlock; ++t) {
        const uint8_t* block = keys + size_t{t / cpu::kDotBlock} * cpu::kDotBlock * width;
        int64_t sum = 0;
        for (uint32_t i = 0; i < dim; ++i) {
          const size_t at =
              (size_t{i / kUnit} * cpu::kDotBlock + t % cpu::kDotBlock) * kUnit + i % kUnit;
          sum +=
              Number(queries.high + q * queries.stride, queries.low + q * queries.stride, i, true) *
              (kBias != 0 ? block[at] : static_cast<int8_t>(block[at]));
        }
        sum -= kBias * (int64_t{256} * queries.high_sums[q] + queries.low_sums[q]);
        out[size_t{q} * cpu::kDotTokens + t] = static_cast<float>(sum);
      }
    }
  }
  static void AddValues(const cpu::DotWeights& weights, const uint8_t* values, uint32_t n_quads,
                        uint32_t width, uint32_t n_channels, size_t stride, float* sums) {
    for (uint32_t q = 0; q < weights.n; ++q) {
      for (uint32_t i = 0; i < n_channels; ++i) {
        int64_t sum = 0;
        for (uint32_t t = 0; t < 4 * n_quads; ++t) {
          const size_t at = (size_t{t / kUnit} * width + i) * kUnit + t % kUnit;
          sum += Number(weights.high + size_t{q} * cpu::kDotTokens,
                        weights.low + size_t{q} * cpu::kDotTokens, t, kSigned) *
                 static_cast<int8_t>(values[at]);
        }
        sums[q * stride + i] += weights.factors[q] * static_cast<float>(sum);
      }
    }
  }

  static constexpr cpu::Int8Dot kTable = {.pack_keys = PackKeys,
                                          .pack_values = PackValues,
                                          .scores = Scores,
                                          .add_values = AddValues,
                                          .weight_max = kSigned ? 32639 : 65535,
                                          .weights_signed = kSigned,
                                          .unit = kUnit,
                                          .key_bias = kBias};
};

}  // namespace arn::conformance
