// Quantises rows of float weights to a bundle's element types. Each row is independent, so cutting
// a matrix into slabs of rows never changes a byte.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/base/dtype.h"

namespace arn::convert {

// Symmetric int8 with one scale per row: scale = max|w| / 127, q = w / scale rounded to nearest
// even. The scale is a positive normal number (1 for a row of zeros). `weights`: finite, [cols];
// `out`: [cols], in [-127, 127].
void QuantizeRowInt8(const float* weights, size_t cols, int8_t* out, float* scale);

// int4 in blocks of 32 along the row, w ~ (q - 8) * scale, q in 0..15, scale in bf16.
//
// The scale of a block minimises the squared error, weighted by each column's importance, over
// these candidates, each rounded to bf16 before its error is measured:
//   - the value of largest magnitude divided by -8, which puts it on the 16th level (the scale
//     takes its sign);
//   - the same value divided by +7 and by -7: symmetric levels;
//   - the same value divided by numbers near these, which clip or widen the range slightly;
//   - for the best of these, twice: the least-squares scale of its own levels l = q - 8,
//     sum(w l) / sum(l l), both weighted.
// A scale may be negative. Its magnitude is at least 2^-122, so that a sixteenth of it is a normal
// number; a block of zeros, or of weights too small for that, has scale 1 and q = 8.
//
// `weights`: finite, [cols]. `importance`: finite and not negative, [cols], such as the mean square
// of a column's input; only ratios within a block matter; null: all equal. `out`: one value per
// byte, [AlignUp(cols, 32)], padded with 8. `scales`: bf16 [AlignUp(cols, 32) / 32].
void QuantizeRowInt4(const float* weights, size_t cols, const float* importance, uint8_t* out,
                     uint16_t* scales);

// Rounds to nearest even. Returns the index of the first value that overflows to infinity, or cols.
size_t RoundRowF16(const float* weights, size_t cols, uint16_t* out);
size_t RoundRowBf16(const float* weights, size_t cols, uint16_t* out);

// Returns the index of the first NaN or infinity, or count.
size_t FindNotFinite(const float* values, size_t count);

}  // namespace arn::convert
