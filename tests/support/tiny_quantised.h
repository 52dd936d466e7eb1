// Quantises the linear layers of small checkpoints as published quantisers store them.
#pragma once

#include <functional>
#include <string>

#include "nlohmann/json.hpp"
#include "tests/support/tiny_checkpoint.h"

namespace arn::test {

enum class TinyMethod {
  kGptq,             // 4 bits, groups of 16, zeros, float16 scales
  kGptqActOrder,     // the same, inputs assigned to groups in another order
  kGptqHeld,         // 4 bits, symmetric, groups of 32, scales that are bfloat16 numbers
  kAwq,              // groups of 16
  kAwqHeld,          // groups of 32
  kCompressedInt4,   // pack-quantized, symmetric, groups of 32, bfloat16 scales
  kCompressedInt8,   // int-quantized, one scale per row, no level of -128
  kCompressedFloat,  // float-quantized, one scale per row
  kFp8,              // blocks of 16 x 16
  kBitNet,           // packed, with a divisor
  kBnbInt8,
  kBnbNf4,  // blocks of 64 elements
  kHqq,     // 4 bits, groups of 16 along rows, float16 scales and zeros
};

// Returns quantization_config.
nlohmann::json TinyQuantisationConfig(TinyMethod method);

// Replaces the F32 matrices whose names `is_linear` accepts (without it: those of *_proj.weight) by
// packed tensors. Returns the tensors with the values that these have, in float32.
TinyTensors QuantiseTiny(TinyMethod method, TinyTensors* tensors,
                         const std::function<bool(const std::string&)>& is_linear = {});

}  // namespace arn::test
