// Element types. Values are stored in bundles: append only.
#pragma once

#include <cstdint>

namespace arn {

enum class DType : uint8_t {
  kF32 = 0,
  kF16 = 1,
  kBf16 = 2,
  kInt8 = 3,  // weights: symmetric, one f32 scale per output channel; KV: one f32 scale per token
              // and head
  kInt4 = 4,  // weights: blocks of 32 along the input, zero point 8, one bf16 scale per block
};
inline constexpr uint32_t kDTypeCount = 5;

const char* DTypeName(DType dtype);  // "f32", "f16", "bf16", "int8", "int4"

// Returns the bytes of one element; 0 for kInt4, which has no whole-byte elements.
constexpr uint32_t ElementBytes(DType dtype) {
  switch (dtype) {
    case DType::kF32: return 4;
    case DType::kF16: return 2;
    case DType::kBf16: return 2;
    case DType::kInt8: return 1;
    case DType::kInt4: return 0;
  }
  return 0;
}

}  // namespace arn
