// Block-quantised element types of GGUF files (https://github.com/ggml-org/ggml: blocks as in
// ggml-common.h). Dequantises in the order of operations of the dequantize_row_* functions in
// ggml-quants.c, for identical floats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "platform/base/dtype.h"

namespace arn::convert {

inline constexpr uint32_t kMaxBlockElements = 256;
inline constexpr uint32_t kMaxBlockBytes = 210;

struct BlockFormat {
  const char* name;
  uint32_t elements;  // per block; rows are whole blocks
  uint32_t bytes;
  // Dequantises one block to `elements` floats.
  void (*dequantise)(const std::byte* block, float* out);
  // The type of bundles that holds its blocks exactly, each as a super-block, and what writes one's
  // codes and entries as RowMatrix has them. Null: there is none.
  void (*nested)(const std::byte* block, uint8_t* codes, int16_t* entries) = nullptr;
  DType nested_type = DType::kF32;
};

// Returns null for an unknown name.
const BlockFormat* FindBlockFormat(const std::string& name);
// Returns all names, for messages.
std::vector<std::string> BlockFormatNames();

}  // namespace arn::convert
