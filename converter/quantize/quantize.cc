#include "converter/quantize/quantize.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>

#include "converter/base/int4_scale.h"
#include "kernels/contract/weight.h"
#include "kernels/math/round.h"
#include "platform/base/arith.h"

namespace arn::convert {
namespace {

constexpr size_t kBlock = kInt4BlockSize;

// Rounds without a call, unlike std::nearbyint, and with SSE2 only. Works on vectors too.
template <typename T>
T RoundToInteger(T v) {
  return (v + kRoundToInteger) - kRoundToInteger;
}

// Four floats, with the vector extension of GCC and Clang: the search below dominates the time of
// int4 conversion, and compilers do not vectorise its float sum.
typedef float Vec __attribute__((vector_size(16)));
constexpr size_t kLanes = 4;
typedef int32_t Ints __attribute__((vector_size(16)));
constexpr size_t kWideLanes = 4 * kLanes;

// Packs the low bytes of sixteen integers: transposes them, so that the four of a lane follow each
// other, and puts these together.
Ints LowBytes(Ints a, Ints b, Ints c, Ints d) {
  const Ints ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
  const Ints ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const Ints cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  const Ints cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  const Ints first = __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5);
  const Ints second = __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7);
  const Ints third = __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5);
  const Ints fourth = __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7);
  return (first & 255) | (second & 255) << 8 | (third & 255) << 16 | fourth << 24;
}

Vec Load(const float* p) {
  Vec v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
void Store(float* p, Vec v) { std::memcpy(p, &v, sizeof v); }
float Sum(Vec v) { return (v[0] + v[2]) + (v[1] + v[3]); }

// Divisors of the block's extreme value; the first wins a tie.
constexpr float kDivisors[] = {-8.0f, 7.0f, -7.0f,  -7.5f,  -8.5f,  -8.25f, -7.75f,
                               7.25f, 6.5f, -7.25f, -8.75f, -6.75f, 7.5f,   -9.25f};

// Writes (q - 8) of a block for `scale` as floats; returns the squared error weighted by
// importance.
float RoundBlock(const float* w, const float* importance, float scale, float* levels) {
  const Vec lowest = Vec{} - 8.0f, highest = Vec{} + 7.0f;
  const float inverse = 1.0f / scale;
  Vec sum = {};
  for (size_t i = 0; i < kBlock; i += kLanes) {
    const Vec value = Load(w + i);
    Vec t = value * inverse;
    t = t < lowest ? lowest : t;
    t = t > highest ? highest : t;
    const Vec level = RoundToInteger(t);
    const Vec error = value - level * scale;
    Store(levels + i, level);
    sum += error * error * Load(importance + i);
  }
  return Sum(sum);
}

// A block divided by the magnitude of its extreme value, so that no error overflows or underflows.
struct UnitBlock {
  float values[kBlock];
  float importance[kBlock];  // at most 1
  float magnitude;
};

struct BlockFit {
  float scale = 1.0f;  // of the original weights, rounded to bf16
  float error = FLT_MAX;
  float levels[kBlock] = {};
};

// True if no value overflows, which only blocks near FLT_MAX can do.
bool AreFinite(float scale, const float* levels) {
  if (std::fabs(scale) < FLT_MAX / 8) return true;
  for (size_t i = 0; i < kBlock; ++i) {
    if (!std::isfinite(levels[i] * scale)) return false;
  }
  return true;
}

// `wanted`: scale of the unit block.
void TryScale(const UnitBlock& block, float wanted, BlockFit* best) {
  const float scale = F32FromBf16(Bf16FromF32(wanted * block.magnitude));
  if (!(std::fabs(scale) >= kSmallestInt4Scale && std::isfinite(scale))) return;
  float levels[kBlock];
  const float error = RoundBlock(block.values, block.importance, scale / block.magnitude, levels);
  if (error < best->error && AreFinite(scale, levels)) {
    best->scale = scale;
    best->error = error;
    std::memcpy(best->levels, levels, sizeof levels);
  }
}

float LeastSquaresScale(const UnitBlock& block, const float* levels) {
  Vec product = {}, square = {};
  for (size_t i = 0; i < kBlock; i += kLanes) {
    const Vec level = Load(levels + i);
    const Vec weighted = level * Load(block.importance + i);
    product += Load(block.values + i) * weighted;
    square += level * weighted;
  }
  return Sum(square) > 0.0f ? Sum(product) / Sum(square) : 0.0f;
}

// Divides by the largest importance, which keeps squared errors in range. Null or all zero: all 1.
void PutImportance(const float* importance, UnitBlock* block) {
  float largest = 0.0f;
  for (size_t i = 0; importance != nullptr && i < kBlock; ++i) {
    largest = std::max(largest, importance[i]);
  }
  for (size_t i = 0; i < kBlock; ++i) {
    block->importance[i] = largest > 0.0f ? importance[i] / largest : 1.0f;
  }
}

// `w`, `importance`: one whole block; `importance` may be null.
void QuantizeBlock(const float* w, const float* importance, uint8_t* out, uint16_t* scale) {
  float extreme = 0.0f;
  for (size_t i = 0; i < kBlock; ++i) {
    if (std::fabs(w[i]) > std::fabs(extreme)) extreme = w[i];
  }
  // Scale 1 and all levels 0: correct for zeros, and for magnitudes below the smallest scale.
  BlockFit best;
  if (extreme != 0.0f) {
    UnitBlock block;
    PutImportance(importance, &block);
    block.magnitude = std::fabs(extreme);
    for (size_t i = 0; i < kBlock; ++i) block.values[i] = w[i] / block.magnitude;
    const float sign = extreme < 0.0f ? -1.0f : 1.0f;
    for (const float divisor : kDivisors) TryScale(block, sign / divisor, &best);
    for (int round = 0; round < 2; ++round) {
      TryScale(block, LeastSquaresScale(block, best.levels), &best);
    }
  }
  *scale = Bf16FromF32(best.scale);
  for (size_t i = 0; i < kBlock; ++i) {
    out[i] = static_cast<uint8_t>(static_cast<int>(best.levels[i]) + 8);
  }
}

}  // namespace

void QuantizeRowInt8(const float* weights, size_t cols, int8_t* out, float* scale) {
  const size_t whole = cols / kWideLanes * kWideLanes;
  // Two, because each waits for its last value.
  Vec even = {}, odd = {};
  const auto raise = [](Vec value, Vec* most) {
    const Vec magnitude = value < 0.0f ? -value : value;
    *most = magnitude > *most ? magnitude : *most;
  };
  for (size_t i = 0; i < whole; i += 2 * kLanes) {
    raise(Load(weights + i), &even);
    raise(Load(weights + i + kLanes), &odd);
  }
  float largest = 0.0f;
  for (size_t i = 0; i < kLanes; ++i) largest = std::max({largest, even[i], odd[i]});
  for (size_t i = whole; i < cols; ++i) largest = std::max(largest, std::fabs(weights[i]));
  *scale = largest == 0.0f ? 1.0f : std::max(largest / 127.0f, FLT_MIN);
  // The extreme's quotient may exceed 127 slightly, which still rounds to 127.
  for (size_t i = 0; i < whole; i += kWideLanes) {
    const auto level = [&](size_t j) {
      return __builtin_convertvector(RoundToInteger(Load(weights + i + j * kLanes) / *scale), Ints);
    };
    const Ints bytes = LowBytes(level(0), level(1), level(2), level(3));
    std::memcpy(out + i, &bytes, sizeof bytes);
  }
  for (size_t i = whole; i < cols; ++i) {
    out[i] = static_cast<int8_t>(RoundToInteger(weights[i] / *scale));
  }
}

void QuantizeRowInt4(const float* weights, size_t cols, const float* importance, uint8_t* out,
                     uint16_t* scales) {
  const size_t whole = cols / kBlock;
  for (size_t b = 0; b < whole; ++b) {
    QuantizeBlock(weights + b * kBlock, importance == nullptr ? nullptr : importance + b * kBlock,
                  out + b * kBlock, scales + b);
  }
  const size_t rest = cols - whole * kBlock;
  if (rest == 0) return;
  float padded[kBlock] = {}, padded_importance[kBlock] = {};
  std::memcpy(padded, weights + whole * kBlock, rest * sizeof(float));
  if (importance != nullptr) {
    std::memcpy(padded_importance, importance + whole * kBlock, rest * sizeof(float));
  }
  // Level 0 is stored as 8.
  QuantizeBlock(padded, importance == nullptr ? nullptr : padded_importance, out + whole * kBlock,
                scales + whole);
}

size_t RoundRowF16(const float* weights, size_t cols, uint16_t* out) {
  size_t first = cols;
  for (size_t i = 0; i < cols; ++i) {
    out[i] = F16FromF32(weights[i]);
    if ((out[i] & 0x7C00u) == 0x7C00u && first == cols) first = i;
  }
  return first;
}

size_t RoundRowBf16(const float* weights, size_t cols, uint16_t* out) {
  size_t first = cols;
  for (size_t i = 0; i < cols; ++i) {
    out[i] = Bf16FromF32(weights[i]);
    if ((out[i] & 0x7F80u) == 0x7F80u && first == cols) first = i;
  }
  return first;
}

size_t FindNotFinite(const float* values, size_t count) {
  // Tests for an all-ones exponent in blocks without branches; most rows have none.
  constexpr int32_t kExponent = 0x7F800000;
  constexpr size_t kTested = 1024;
  for (size_t begin = 0; begin < count; begin += kTested) {
    const size_t end = std::min(begin + kTested, count);
    Ints any = {};
    size_t i = begin;
    for (; i + kLanes <= end; i += kLanes) {
      Ints bits;
      std::memcpy(&bits, values + i, sizeof bits);
      any |= (bits & kExponent) == kExponent;
    }
    bool found = (any[0] | any[1] | any[2] | any[3]) != 0;
    for (; i < end; ++i) found = found || !std::isfinite(values[i]);
    if (!found) continue;
    for (i = begin; i < end; ++i) {
      if (!std::isfinite(values[i])) return i;
    }
  }
  return count;
}

}  // namespace arn::convert
