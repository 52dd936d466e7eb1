#include "converter/base/ternary_row.h"

#include <algorithm>
#include <cmath>

#include "kernels/contract/code_type.h"

namespace arn::convert {
namespace {

constexpr uint8_t kZeroCode = 1;
constexpr uint16_t kOneInF16 = 0x3C00;

}  // namespace

float TernaryMagnitude(const float* weights, size_t n) {
  float magnitude = 0.0f;
  for (size_t i = 0; i < n; ++i) {
    const float value = std::fabs(weights[i]);
    if (value == 0.0f || value == magnitude) continue;
    if (magnitude != 0.0f) return -1.0f;
    magnitude = value;
  }
  return magnitude;
}

bool EncodeTernaryRow(const float* weights, size_t cols, uint8_t* codes, int16_t* scales,
                      float* row_scale) {
  const size_t block = kTernaryCodes.block;
  const float whole = TernaryMagnitude(weights, cols);
  *row_scale = whole > 0.0f ? whole : 1.0f;
  for (size_t begin = 0; begin < cols; begin += block) {
    uint16_t bits = kOneInF16;
    if (whole < 0.0f) {
      const float own = TernaryMagnitude(weights + begin, std::min(block, cols - begin));
      bits = F16FromF32(own);
      if (own < 0.0f || F32FromF16(bits) != own) return false;
    }
    scales[begin / block] = static_cast<int16_t>(bits);
  }
  std::fill(codes, codes + kTernaryCodes.Padded(cols), kZeroCode);
  for (size_t c = 0; c < cols; ++c) {
    if (weights[c] != 0.0f) codes[c] = weights[c] < 0.0f ? 0 : 2;
  }
  return true;
}

}  // namespace arn::convert
