// Large matrices for benchmarks, and their shared command line options.
#pragma once

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "platform/base/arith.h"
#include "program_builder.h"

namespace arn::conformance {

// Returns a matrix of random bytes, with scales that keep activations near 1.
inline Matrix FastMatrix(DType dtype, uint32_t rows, uint32_t cols, std::mt19937* rng) {
  if (dtype > DType::kInt4) return RandomMatrix(dtype, rows, cols, false, rng);
  Matrix m;
  m.dtype = dtype;
  m.rows = rows;
  m.cols = cols;
  const uint64_t n = uint64_t{rows} * (dtype == DType::kInt4 ? AlignUp(cols, 32) : cols);
  const float scale = 1.0f / std::sqrt(static_cast<float>(cols));
  if (dtype == DType::kInt8 || dtype == DType::kInt4) {
    m.values.resize(n);
    for (uint8_t& v : m.values)
      v = static_cast<uint8_t>((*rng)() >> (dtype == DType::kInt4 ? 28 : 24));
    if (dtype == DType::kInt8) {
      for (uint8_t& v : m.values) v = v == 128 ? 0 : v;
      const std::vector<float> scales(rows, scale / 73.0f);
      m.scales.resize(rows * sizeof(float));
      std::memcpy(m.scales.data(), scales.data(), m.scales.size());
    } else {
      const std::vector<uint16_t> scales(n / 32, Bf16FromF32(scale / 4.6f));
      m.scales.resize(scales.size() * sizeof(uint16_t));
      std::memcpy(m.scales.data(), scales.data(), m.scales.size());
    }
    return m;
  }
  m.values.resize(n * ElementBytes(dtype));
  for (uint64_t i = 0; i < n; ++i) {
    const float x = (static_cast<float>((*rng)() >> 8) / 8388608.0f - 1.0f) * 1.7f * scale;
    if (dtype == DType::kF32) {
      std::memcpy(m.values.data() + i * 4, &x, 4);
    } else {
      const uint16_t h = dtype == DType::kF16 ? F16FromF32(x) : Bf16FromF32(x);
      std::memcpy(m.values.data() + i * 2, &h, 2);
    }
  }
  return m;
}

inline DType ParseType(const std::string& name) {
  for (uint32_t i = 0; i < kDTypeCount; ++i) {
    if (name == DTypeName(static_cast<DType>(i))) return static_cast<DType>(i);
  }
  std::fprintf(stderr, "unknown type %s\n", name.c_str());
  std::exit(1);
}

}  // namespace arn::conformance
