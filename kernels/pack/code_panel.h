// Layout of the types of codes (kernels/contract/code_type.h), one on every CPU.
//
// A panel holds 16 consecutive output rows, padded with codes 0 and scales 0. Panels are
// contiguous:
//   f32[16]  negated sums of the levels, less their middle (CodeType), times the scales of their
//            blocks
//   f32[16]  scales of the rows
//   f32[16]  bias
//   [blocks][16]  scales of the blocks, f16 or int8, padded to 64 bytes; none with kNone. Nested:
//                 pairs of entries, [pairs][16][2]
//   [units]  codes of 32 columns: `bits` vectors of 64 bytes
// Byte 4 r + i of a vector has codes of row r and of columns 4 q + i, for several quads q of the
// unit's eight:
//   2 bits  vector v has quads 4 v to 4 v + 3, from the low bits up
//   3 bits  vector v has quad 2 v in bits 0 to 2 and quad 2 v + 1 in bits 4 to 6. Bits 3 and 7 are
//           bit v of the codes of quads 6 and 7.
//   4 bits  vector v has quad 2 v in the low half and quad 2 v + 1 in the high half
//   6 bits  the low 4 bits as with 4 bits; vectors 4 and 5 have the upper 2, as with 2 bits
//   8 bits  vector v has quad v
#pragma once

#include <cstdint>

#include "kernels/contract/code_type.h"

namespace arn {

inline constexpr uint32_t kCodeColumns = 16;  // outputs of a panel
inline constexpr uint32_t kCodeVector = 64;   // bytes
inline constexpr WeightLayout kCodeLayout = {WeightOrder::kPanels, kCodeColumns, 4, 1, 0};

struct CodePanel {
  static constexpr uint32_t kRowScales = kCodeColumns * sizeof(float);
  static constexpr uint32_t kBias = 2 * kRowScales;
  static constexpr uint32_t kScales = 3 * kRowScales;

  constexpr CodePanel(const CodeType& type, uint64_t cols)
      : scale_bytes(type.scale_bytes()),
        super_blocks(type.super_blocks),
        codes_offset(kScales + AlignUp(type.Entries(cols) * kCodeColumns * type.scale_bytes(),
                                       uint64_t{kCodeVector})),
        unit_bytes(uint64_t{type.bits} * kCodeVector),
        bytes(codes_offset + CeilDiv(cols, kCodeUnit) * unit_bytes) {}

  uint64_t scale_bytes;  // of a block of a row
  uint32_t super_blocks;
  uint64_t codes_offset;  // from the start of the panel
  uint64_t unit_bytes;
  uint64_t bytes;
};

}  // namespace arn
