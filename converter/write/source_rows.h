// A planned tensor's values, read from the checkpoint and put into the order of the bundle. NaN and
// infinity are refused: ConvertError names file, tensor and index.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "converter/tensor_plan.h"

namespace arn::convert {

// Rows [first, first + rows) of a matrix, which may lie in several parts: [rows, tensor.cols].
std::vector<float> ReadRows(const PlannedTensor& tensor, uint32_t first, uint32_t rows);

// [tensor.rows]; empty when it has none.
std::vector<float> ReadBias(const PlannedTensor& tensor);

// [tensor.cols], of a vector.
std::vector<float> ReadVector(const PlannedTensor& tensor);

// Throws ConvertError: the value at (row, col) of the matrix is too large for tensor.dtype.
[[noreturn]] void FailOverflow(const PlannedTensor& tensor, uint32_t row, size_t col);

}  // namespace arn::convert
