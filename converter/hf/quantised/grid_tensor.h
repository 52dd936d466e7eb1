// A quantised matrix whose elements are (value of the code - zero) * scale * factor, computed in
// float32 in this order, with a scale and a zero for each group of columns: all methods here but
// bitsandbytes' 4 bits, whose blocks cross rows.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "converter/base/decoded_tensor.h"
#include "converter/hf/quantised/code_tables.h"
#include "converter/hf/quantised/planes.h"

namespace arn::convert {

struct QuantisedGrid {
  CodePlane codes;
  CodeTable values = {};
  bool is_integer = false;  // all values are whole numbers of at most 8 bits
  ScalePlane scales;
  bool has_zeros = false;
  CodePlane zeros;  // one for each scale of the matrix; of whole matrices, not of stacks
  CodeTable zero_values = {};
  uint64_t group_cols = 0;         // columns of a group: the last may have fewer
  std::vector<uint32_t> group_of;  // of each column; empty: column / group_cols
  float factor = 1.0f;
};

// Returns the grid of a matrix whose outputs follow each other in memory, with whole numbers of
// `bits` and their zeros: codes and zeros in 32-bit words, scales [groups, rows].
QuantisedGrid GridByColumns(const Checkpoint::Entry& codes, const Checkpoint::Entry& zeros,
                            const Checkpoint::Entry& scales, uint32_t bits, uint64_t rows,
                            uint64_t cols);

class GridTensor : public DecodedTensor {
 public:
  // REQUIRES: the stored tensors have the shapes that the grid says, and group_of is in range.
  GridTensor(SourceTensor tensor, std::string method, QuantisedGrid grid);

  // Exactly: the levels are whole numbers in the type's range, each row (int8), block of 32
  // columns (int4) or super-block (int4k) has one scale, and the type has this number; a factor is
  // multiplied into it, but not with int4 and int4k. fp4: the codes are FP4's, in groups of a
  // multiple of 32 columns, and half of each scale is an f16 number. Scans the scales, the zeros
  // and, of 8 bits, the codes.
  Held HeldBy(DType dtype) const override;
  void ReadInt8(uint64_t first, uint32_t n, int8_t* levels, float* scales) const override;
  void ReadInt4(uint64_t first, uint32_t n, uint8_t* levels, uint16_t* scales) const override;
  void ReadCodes(const CodeType& type, uint64_t first, uint32_t n, uint8_t* codes,
                 int16_t* entries) const override;

 private:
  struct Tile {
    std::vector<uint8_t> codes;  // [n, cols]
    std::vector<float> scales;   // [n, groups]
    std::vector<float> zeros;    // [n, groups], or empty
  };
  void ReadRows(uint64_t first, uint32_t n, float* out) const override;
  Tile ReadTile(uint64_t first, uint32_t n, bool with_codes) const;
  Held FindHeld(DType dtype) const;
  Held HeldRows(DType dtype, uint64_t first, uint32_t n) const;
  Held HeldNested(uint64_t first, uint32_t n) const;
  Held HeldFp4(uint64_t first, uint32_t n) const;
  void ReadNested(const CodeType& type, const Tile& tile, uint32_t n, uint8_t* codes,
                  int16_t* entries) const;
  void ReadFp4(const CodeType& type, const Tile& tile, uint32_t n, uint8_t* codes,
               int16_t* entries) const;
  float LeastValue() const;
  uint64_t groups() const { return grid_.scales.cols; }
  float zero(const Tile& tile, uint64_t r, uint64_t group) const {
    return tile.zeros.empty() ? 0.0f : tile.zeros[r * groups() + group];
  }

  QuantisedGrid grid_;
  // By DType, from int8 on. -1: unknown.
  static constexpr auto kFirstHeld = static_cast<uint32_t>(DType::kInt8);
  mutable std::atomic<int> held_[kDTypeCount - kFirstHeld];
};

}  // namespace arn::convert
