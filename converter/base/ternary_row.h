// Rows of -1, 0 and 1 times a scale, as the element type `ternary` holds them: exactly, or not at
// all.
#pragma once

#include <cstddef>
#include <cstdint>

namespace arn::convert {

// Finds levels and scales whose products are the weights, bit for bit: one scale for the row, or
// one for each block of 256 columns, which f16 holds. Returns false if there are none.
// `weights`: finite, [cols]. codes: [AlignUp(cols, 32)]; scales: [CeilDiv(cols, 256)], as
// RowMatrix::scales.
bool EncodeTernaryRow(const float* weights, size_t cols, uint8_t* codes, int16_t* scales,
                      float* row_scale);

// Returns the magnitude that all weights but zeros have; 0: only zeros, -1: several. A row without
// several needs no scales of blocks.
float TernaryMagnitude(const float* weights, size_t n);

}  // namespace arn::convert
