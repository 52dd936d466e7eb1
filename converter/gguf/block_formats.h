// Block-quantised element types of GGUF files (https://github.com/ggml-org/ggml: blocks as in
// ggml-common.h). Dequantises in the order of operations of the dequantize_row_* functions in
// ggml-quants.c, for identical floats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/contract/code_type.h"
#include "platform/base/dtype.h"

namespace arn::convert {

inline constexpr uint32_t kMaxBlockElements = 256;
inline constexpr uint32_t kMaxBlockBytes = 210;

// Columns that share a scale and a minimum, at least.
inline constexpr uint32_t kHeldPart = 16;

// A block taken apart: scale times its part's scale times the level, less minimum times its part's
// minimum.
struct HeldBlock {
  uint16_t scale = 0, minimum = 0;  // f16
  int8_t scales[kMaxBlockElements / kHeldPart] = {1, 1};
  uint8_t minimums[kMaxBlockElements / kHeldPart] = {};
  int8_t levels[kMaxBlockElements];
  const int8_t* table = nullptr;  // by code: `levels` are codes
  // Below 0: of levels of 4 bits, which then have no minimums.
  int least = 0;
  bool is_exact = true;  // false: the scale was rounded to f16
};

struct BlockFormat {
  const char* name;
  uint32_t elements;  // per block; rows are whole blocks
  uint32_t bytes;
  // Dequantises one block to `elements` floats.
  void (*dequantise)(const std::byte* block, float* out);
  // Takes a block apart. Null: no type of bundles holds it.
  void (*take)(const std::byte* block, HeldBlock* out) = nullptr;
  // The types that hold its blocks exactly, each as a super-block or a block.
  DType held_by[3] = {};

  bool IsHeldBy(DType dtype) const;
  // Writes a block's codes and entries in one of these types, as RowMatrix has them. Returns false
  // if its scale is no f16 number, as may be with MXFP4 alone.
  bool Hold(const CodeType& type, const std::byte* block, uint8_t* codes, int16_t* entries) const;
};

// Returns null for an unknown name.
const BlockFormat* FindBlockFormat(const std::string& name);
// Returns all names, for messages.
std::vector<std::string> BlockFormatNames();

}  // namespace arn::convert
