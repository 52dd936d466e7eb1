#include "platform/base/dtype.h"

namespace arn {

const char* DTypeName(DType dtype) {
  switch (dtype) {
    case DType::kF32: return "f32";
    case DType::kF16: return "f16";
    case DType::kBf16: return "bf16";
    case DType::kInt8: return "int8";
    case DType::kInt4: return "int4";
    case DType::kTernaryRows:
    case DType::kTernary: return "ternary";
    case DType::kInt2: return "int2";
    case DType::kInt3: return "int3";
    case DType::kInt4K:
    case DType::kInt4K128:
    case DType::kInt4K32: return "int4k";
    case DType::kInt6K:
    case DType::kInt6K32: return "int6k";
    case DType::kInt8K:
    case DType::kInt8K256: return "int8k";
    case DType::kFp4: return "fp4";
    case DType::kIq4K:
    case DType::kIq4: return "iq4";
  }
  return "unknown dtype";
}

}  // namespace arn
