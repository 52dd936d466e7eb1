// The element types of GGUF files whose elements come in blocks, and their values
// (https://github.com/ggml-org/ggml: ggml-common.h has the blocks, ggml-quants.c the
// dequantize_row_* functions, whose order of operations is followed: same floats).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace arn::convert {

inline constexpr uint32_t kMaxBlockElements = 256;
inline constexpr uint32_t kMaxBlockBytes = 210;

struct BlockFormat {
  const char* name;
  uint32_t elements;  // of a block; rows are whole blocks
  uint32_t bytes;
  // One block to `elements` floats.
  void (*dequantise)(const std::byte* block, float* out);
};

// Null when there is none of that name.
const BlockFormat* FindBlockFormat(const std::string& name);

}  // namespace arn::convert
