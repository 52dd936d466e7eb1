// From rows of float weights to the element types of a bundle. Each row is quantised by itself, so
// a matrix may be cut into slabs of rows anywhere without changing a byte.
#pragma once

#include <cfloat>
#include <cstddef>
#include <cstdint>

#include "platform/base/dtype.h"

namespace arn::convert {

// Symmetric int8 with one scale a row: scale = max|w| / 127, q = w / scale rounded to nearest even.
// The scale is always a positive normal number (1 for a row of zeros). `weights`: finite, [cols];
// `out`: [cols], in [-127, 127].
void QuantizeRowInt8(const float* weights, size_t cols, int8_t* out, float* scale);

// Of int4: packed panels hold a sixteenth of the scale, which is to be a normal number too.
inline constexpr float kSmallestInt4Scale = 16 * FLT_MIN;

// int4 in blocks of 32 along the row, w ~ (q - 8) * scale, q in 0..15, scale in bf16.
//
// The scale of a block is the one of least squared error, each column's weighted by its importance,
// among these candidates, each rounded to bf16 before its error is measured with the q that it
// gives:
//   - the value of largest magnitude divided by -8, which puts it on the 16th level (its sign goes
//     into the scale);
//   - the same value divided by +7 and by -7: symmetric levels;
//   - the same value divided by other numbers near these, which clip or widen the range a little;
//   - for the best of these, twice: the least-squares scale of its own levels l = q - 8, which is
//     sum(w l) / sum(l l), both weighted.
// So a scale may be negative. Its magnitude is at least 2^-122, so that a sixteenth of it is a
// normal number; a block of zeros, or of weights too small for that, has scale 1 and q = 8.
//
// `weights`: finite, [cols]. `importance`: finite and not negative, [cols], such as the mean square
// of what the column multiplies; only the ratios inside a block count; null: all the same. `out`:
// one value a byte, [AlignUp(cols, 32)], 8 where padded. `scales`: bf16 [AlignUp(cols, 32) / 32].
void QuantizeRowInt4(const float* weights, size_t cols, const float* importance, uint8_t* out,
                     uint16_t* scales);

// Rounds to nearest even. Returns the index of the first value that becomes infinite, or cols.
size_t RoundRowF16(const float* weights, size_t cols, uint16_t* out);
size_t RoundRowBf16(const float* weights, size_t cols, uint16_t* out);

// The index of the first NaN or infinity, or count.
size_t FindNotFinite(const float* values, size_t count);

}  // namespace arn::convert
