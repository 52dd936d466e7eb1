// The two kinds of stored tensors that make a quantised matrix: small codes, and scales.
#pragma once

#include <cstdint>
#include <vector>

#include "converter/hf/checkpoint.h"
#include "converter/hf/quantised/code_tables.h"

namespace arn::convert {

// A matrix of codes of 1 to 8 bits, row r and column c, stored in one of four ways: as [rows, cols]
// or, by_column, as [cols, rows]; the codes packed one after another, lowest bits first, along the
// stored rows or, packs_down, along the stored columns in words of 32 bits. A stored row (column)
// is padded to whole words of its type.
struct CodePlane {
  Checkpoint::Entry stored;
  uint32_t bits = 8;
  uint64_t rows = 0, cols = 0;
  bool by_column = false;
  bool packs_down = false;
  // Not null, with 4 bits, along rows: position of code i of each 8 (AWQ).
  const uint8_t* order = nullptr;

  // Writes rows [first, first + n): [n, cols]. Thread-safe. Throws ConvertError.
  void Read(uint64_t first, uint32_t n, uint8_t* out) const;

 private:
  void ReadAlong(uint64_t first, uint32_t n, uint8_t* out) const;
  void ReadAcross(uint64_t first, uint32_t n, uint8_t* out) const;
  void ReadDown(uint64_t first, uint32_t n, uint8_t* out) const;
  void ReadDownAcross(uint64_t first, uint32_t n, uint8_t* out) const;
  uint64_t stored_row_bytes() const;
};

// True if ReadScales can read the tensor: F32, F16, BF16, F8_E4M3, or powers of two in U8 or
// F8_E8M0.
bool IsScale(const SourceTensor& tensor);
// Reads elements [first, first + count) of such a tensor. Thread-safe. Throws ConvertError.
void ReadScales(const Checkpoint::Entry& entry, uint64_t first, uint64_t count, float* out);

// The scales of a matrix: row r of it has row r / block_rows of a matrix [scale_rows, cols], or,
// by_column, of one stored as [cols, scale_rows]. A matrix that is a stack of several has the
// scales of each on their own.
struct ScalePlane {
  Checkpoint::Entry stored;
  uint64_t cols = 1;
  uint64_t block_rows = 1;   // of the matrix
  uint64_t matrix_rows = 0;  // of each matrix of the stack
  uint64_t scale_rows = 0;   // of each matrix of the stack
  bool by_column = false;
  float divisor = 1.0f;  // of all scales

  // Writes the scales of rows [first, first + n): [n, cols]. Thread-safe. Throws ConvertError.
  void Read(uint64_t first, uint32_t n, float* out) const;
};

}  // namespace arn::convert
