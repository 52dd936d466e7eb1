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
  // Weights of codes (kernels/contract/code_type.h).
  kTernary = 5,
  kInt2 = 6,
  kInt3 = 7,
  kTernaryRows = 8,
  kInt4K = 9,  // with super-blocks of 256 columns
  kInt4K128 = 10,
  kInt4K32 = 11,
  kInt6K = 12,  // with super-blocks of 256 columns
  kInt6K32 = 13,
  kInt8K = 14,
  kFp4 = 15,       // floats of 4 bits (E2M1)
  kIq4K = 16,      // with super-blocks of 256 columns
  kIq4 = 17,       // with blocks of 32
  kInt8K256 = 18,  // with super-blocks of 256 columns
};
inline constexpr uint32_t kDTypeCount = 19;

// "f32", "f16", "bf16", "int8", "int4", "int2", "int3", "fp4"; "ternary", "iq4" and "int8k" for
// both types of theirs, "int4k" and "int6k" for all of 4 and of 6 bits with minimums
const char* DTypeName(DType dtype);

// Returns the bytes of one element; 0 for types without whole-byte elements.
constexpr uint32_t ElementBytes(DType dtype) {
  return dtype == DType::kF32 ? 4 : dtype <= DType::kBf16 ? 2 : dtype == DType::kInt8 ? 1 : 0;
}

// True for integers times scales. Matmuls with such weights quantise their inputs to int8.
constexpr bool IsInteger(DType dtype) { return dtype >= DType::kInt8; }

constexpr bool IsTernary(DType dtype) {
  return dtype == DType::kTernary || dtype == DType::kTernaryRows;
}

// True for the types whose blocks have a scale and a minimum (BlockScale::kNested).
constexpr bool HasMinimums(DType dtype) {
  return (dtype >= DType::kInt4K && dtype <= DType::kInt6K32) || dtype == DType::kInt8K256;
}
constexpr bool IsInt4K(DType dtype) { return dtype >= DType::kInt4K && dtype <= DType::kInt4K32; }

// True for the types that hold what others have quantised, and to which nothing is rounded.
constexpr bool IsOfOthers(DType dtype) { return dtype >= DType::kInt4K; }

}  // namespace arn
