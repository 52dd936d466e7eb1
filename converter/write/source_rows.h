// Reads a planned tensor's values from the checkpoint in the bundle's order. Refuses NaN and
// infinity: throws ConvertError with file, tensor and index.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "converter/tensors/tensor_plan.h"

namespace arn::convert {

// Writes rows [first, first + rows) of a matrix, which may span several parts: [rows,
// tensor.cols].
void ReadRows(const PlannedTensor& tensor, uint32_t first, uint32_t rows, float* values);

// Returns [tensor.rows]; empty if it has no bias.
std::vector<float> ReadBias(const PlannedTensor& tensor);

// Returns a vector, [tensor.cols].
std::vector<float> ReadVector(const PlannedTensor& tensor);

// Throws ConvertError: the value at (row, col) of the matrix overflows tensor.dtype.
[[noreturn]] void FailOverflow(const PlannedTensor& tensor, uint32_t row, size_t col);

}  // namespace arn::convert
