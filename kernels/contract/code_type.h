// Weight types whose elements are codes of 2 to 8 bits: data, from which packing, kernels,
// quantisation and reports follow.
//
//   w = level of the code * scale of the block * scale of the row
//   w = d s (level) - e m, with BlockScale::kNested
//   w = d s (level), with BlockScale::kNestedBytes
//
// A level is a whole number that a table gives each code. A block is a number of columns with one
// scale; a row has an f32 scale, by which all its blocks are multiplied. Every CPU has instructions
// that look up 16 bytes at once, so levels need not be evenly spaced. kernels/pack/code_panel.h has
// the only layout of these types: the same on every CPU.
//
// Nested scales are those of GGUF's Q4_K: s and m are bytes of a block, d and e numbers of f16 of a
// super-block of several. They hold a scale of f16 and a whole zero of each group of columns, too:
// s is 1, d and e are the scale, m is the zero. Products are exact in f32, so only the difference
// is rounded, once, as in ggml. With levels -32 to 31 and blocks of 16 they hold any of GGUF's
// K-types: m is 0 for those without minimums. Without e and m, they are those of GGUF's IQ4_XS.
#pragma once

#include <cstdint>

#include "kernels/contract/weight.h"
#include "platform/base/arith.h"

namespace arn {

// False in libraries without ARENITE_LOW_BITS: bundles with these types are refused.
#ifdef ARENITE_NO_LOW_BITS
inline constexpr bool kHasLowBits = false;
#else
inline constexpr bool kHasLowBits = true;
#endif

// How the scale of a block is stored.
enum class BlockScale : uint8_t {
  kF16,   // its bits
  kInt8,  // a whole number, not -128
  kNone,  // not at all: it is 1, and a block is as many columns as a sum of whole numbers takes
  // An entry of 16 bits, s 256 + m; s has a sign. Two entries, d and e, stand before those of a
  // super-block.
  kNested,
  // The same without e and m: a byte, s, with a sign. An entry of 16 bits has those of two blocks,
  // the first in its low half. Two entries, d and 0, stand before those of a super-block, whose
  // number of blocks is a multiple of 4.
  kNestedBytes,
};

inline constexpr float kLeastSymmetricRange = 1e-5f;

// Codes of a row are padded to a multiple of this many columns.
inline constexpr uint32_t kCodeUnit = 32;
// Codes of 6 bits are levels plus this.
inline constexpr int kLeastOf6Bits = 32;

struct CodeType {
  DType dtype;
  uint32_t bits;  // of a code
  // By code, repeated up to 8. Without a table for more than 4 bits.
  int8_t levels[16];
  // Columns: half of kCodeUnit, or a multiple. The last block of a row may have fewer.
  uint32_t block;
  BlockScale scale;
  // Activations are rounded as BitNet's training does: zero point 0, and 127 for the largest
  // magnitude, or for kLeastSymmetricRange.
  bool takes_symmetric_rows;
  uint32_t super_blocks = 0;  // blocks of a super-block; 0: scales are not nested

  constexpr bool is_nested() const { return super_blocks != 0; }
  constexpr bool has_minimums() const { return scale == BlockScale::kNested; }
  constexpr uint32_t n_levels() const { return 1u << bits; }
  constexpr int8_t Level(uint32_t code) const {
    if (bits <= 4) return levels[code];
    return static_cast<int8_t>(bits == 6 ? static_cast<int>(code) - kLeastOf6Bits : code);
  }
  // Returns whether two products of levels and bytes may not fit 16 bits.
  constexpr bool HasLongLevels() const {
    constexpr int kMost = 64;
    bool is_long = bits == 8;
    for (const int level : levels) is_long = is_long || level > kMost || level < -kMost;
    return is_long;
  }
  // Centres the levels: kernels subtract it, which keeps sums small.
  constexpr int32_t middle() const { return scale == BlockScale::kNested && bits == 4 ? 8 : 0; }
  constexpr uint32_t scale_bytes() const {
    return scale == BlockScale::kInt8 ? 1 : scale == BlockScale::kNone ? 0 : 2;
  }
  // Returns whether each level is the code plus the first one.
  constexpr bool HasSteps() const {
    uint32_t code = 0;
    while (code < n_levels() && levels[code] == levels[0] + static_cast<int>(code)) ++code;
    return code == n_levels();
  }
  constexpr uint64_t Padded(uint64_t cols) const { return AlignUp(cols, kCodeUnit); }
  constexpr uint64_t Blocks(uint64_t cols) const { return CeilDiv(Padded(cols), block); }
  // The entries of 16 bits that a row's scales take, and those of its blocks. Super-blocks have an
  // even number: the last of an odd number is followed by one of no block, which is 0.
  constexpr uint64_t Entries(uint64_t cols) const {
    const uint64_t n = EntryOf(Blocks(cols) - 1) + 1;
    return is_nested() ? AlignUp(n, 2) : n;
  }
  constexpr uint64_t EntryOf(uint64_t i) const {
    if (!is_nested()) return i;
    const uint32_t of_entry = has_minimums() ? 1 : 2;
    return i / super_blocks * (2 + AlignUp(super_blocks / of_entry, 2u)) + 2 +
           i % super_blocks / of_entry;
  }
  // Where the entries of a block's super-block begin.
  constexpr uint64_t SuperEntryOf(uint64_t i) const { return EntryOf(i - i % super_blocks) - 2; }
};

// Blocks of 256 are those of GGUF's TQ1_0 and TQ2_0. No weight has the code 3.
inline constexpr CodeType kTernaryCodes = {DType::kTernary,  2,   {-1, 0, 1, 2, -1, 0, 1, 2}, 256,
                                           BlockScale::kF16, true};
// One scale per row, as BitNet has one per matrix.
inline constexpr CodeType kTernaryRowCodes = {
    DType::kTernaryRows, 2, {-1, 0, 1, 2, -1, 0, 1, 2}, 256, BlockScale::kNone, true};
// Denser near 0, as weights are, and longer on one side: blocks of 32 seldom have extremes on both.
inline constexpr CodeType kInt2Codes = {
    DType::kInt2, 2, {-40, -13, 5, 26, -40, -13, 5, 26}, 32, BlockScale::kInt8, false};
inline constexpr CodeType kInt3Codes = {
    DType::kInt3, 3, {-60, -38, -23, -10, 3, 16, 31, 49}, 32, BlockScale::kInt8, false};

constexpr CodeType Int4KCodes(DType dtype, uint32_t super_blocks) {
  return {dtype,
          4,
          {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
          32,
          BlockScale::kNested,
          false,
          super_blocks};
}
// Super-blocks of Q4_K; of groups of 128 columns; of any multiple of 32.
inline constexpr CodeType kInt4KCodes = Int4KCodes(DType::kInt4K, 8);
inline constexpr CodeType kInt4K128Codes = Int4KCodes(DType::kInt4K128, 4);
inline constexpr CodeType kInt4K32Codes = Int4KCodes(DType::kInt4K32, 1);
// Super-blocks of GGUF's K-types with up to 6 bits; of 32 columns.
inline constexpr CodeType kInt6KCodes = {DType::kInt6K, 6, {}, 16, BlockScale::kNested, false, 16};
inline constexpr CodeType kInt6K32Codes = {DType::kInt6K32,     6,     {}, 16,
                                           BlockScale::kNested, false, 2};
// Q8_0, and others whose levels are bytes. A code is the byte of its level.
inline constexpr CodeType kInt8KCodes = {DType::kInt8K, 8, {}, 32, BlockScale::kF16, false};

// Super-blocks of any of GGUF's K-types and of IQ4_XS.
inline constexpr CodeType kInt8K256Codes = {DType::kInt8K256,    8,     {}, 16,
                                            BlockScale::kNested, false, 16};

// Levels of GGUF's IQ4_XS and IQ4_NL, denser near 0 (ggml's kvalues_iq4nl).
constexpr CodeType Iq4Codes(DType dtype, BlockScale scale, uint32_t super_blocks) {
  return {dtype,
          4,
          {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113},
          32,
          scale,
          false,
          super_blocks};
}
inline constexpr CodeType kIq4KCodes = Iq4Codes(DType::kIq4K, BlockScale::kNestedBytes, 8);
inline constexpr CodeType kIq4Codes = Iq4Codes(DType::kIq4, BlockScale::kF16, 0);

// Floats of 4 bits (E2M1) times 2, by their code: MXFP4, whose scale is a power of two (OCP
// Microscaling Formats Specification, version 1.0).
inline constexpr CodeType kFp4Codes = {
    DType::kFp4,      4,    {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}, 32,
    BlockScale::kF16, false};

inline constexpr const CodeType* kCodeTypes[] = {
    &kTernaryCodes,  &kTernaryRowCodes, &kInt2Codes,  &kInt3Codes,    &kInt4KCodes,
    &kInt4K128Codes, &kInt4K32Codes,    &kInt6KCodes, &kInt6K32Codes, &kInt8KCodes,
    &kFp4Codes,      &kIq4KCodes,       &kIq4Codes,   &kInt8K256Codes};

// Returns null for other types.
constexpr const CodeType* FindCodeType(DType dtype) {
  for (const CodeType* type : kCodeTypes) {
    if (type->dtype == dtype) return type;
  }
  return nullptr;
}

// Returns the level of the row's element as a float: exact in this order.
constexpr float CodeValue(int8_t level, float block_scale, float row_scale) {
  return static_cast<float>(level) * (block_scale * row_scale);
}

// BlockNumbers: what a block's levels are multiplied by, and what is subtracted then (0 without
// minimums).
struct BlockNumbers {
  float scale, minimum;
};

// Returns the numbers of block i of a row with nested scales; get(n): entry n of the row.
template <class Get>
BlockNumbers NestedNumbers(const CodeType& type, uint64_t i, const Get& get) {
  const uint64_t super = type.SuperEntryOf(i);
  const int32_t both = static_cast<int16_t>(get(type.EntryOf(i)));
  if (!type.has_minimums()) {
    const auto s = static_cast<int8_t>(both >> (i % 2 * 8));
    return {F32FromF16(static_cast<uint16_t>(get(super))) * static_cast<float>(s), 0.0f};
  }
  return {F32FromF16(static_cast<uint16_t>(get(super))) * static_cast<float>(both >> 8),
          F32FromF16(static_cast<uint16_t>(get(super + 1))) * static_cast<float>(both & 0xFF)};
}

// Returns an element with nested scales.
constexpr float NestedValue(int8_t level, const BlockNumbers& of_block) {
  return of_block.scale * static_cast<float>(level) - of_block.minimum;
}

// Returns a block's scale from how it is stored, in 16 bits (RowMatrix::scales), unless nested.
inline float BlockScaleOf(const CodeType& type, int16_t stored) {
  if (type.scale == BlockScale::kNone) return 1.0f;
  return type.scale == BlockScale::kF16 ? F32FromF16(static_cast<uint16_t>(stored))
                                        : static_cast<float>(stored);
}

constexpr bool TakesSymmetricRows(DType dtype) {
  const CodeType* type = FindCodeType(dtype);
  return kHasLowBits && type != nullptr && type->takes_symmetric_rows;
}

// The columns that the inputs of a matmul are padded to, with zeros.
inline uint64_t PaddedInputs(DType dtype, uint64_t cols, uint32_t group) {
  const bool is_code = kHasLowBits && FindCodeType(dtype) != nullptr;
  return AlignUp(cols, is_code ? kCodeUnit : dtype == DType::kInt4 ? kInt4BlockSize : group);
}

// Returns the bits of a matrix's values and scales, with the padding of its rows and without the
// sums that kernels keep.
inline uint64_t StoredBits(DType dtype, uint64_t rows, uint64_t cols) {
  if (const CodeType* type = FindCodeType(dtype)) {
    return rows * (type->Padded(cols) * type->bits + type->Entries(cols) * 8 * type->scale_bytes() +
                   8 * sizeof(float));
  }
  if (dtype == DType::kInt4) {
    const uint64_t blocks = CeilDiv(cols, uint64_t{kInt4BlockSize});
    return rows * blocks * (4 * kInt4BlockSize + 16);
  }
  return rows * (8 * ElementBytes(dtype) * cols + (dtype == DType::kInt8 ? 32 : 0));
}

}  // namespace arn
