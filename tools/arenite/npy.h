// Writes arrays in NumPy's format (numpy.lib.format, version 1.0).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace arn::tool {

// Writes f32 [rows, cols]. Throws Error.
void WriteNpy(const std::string& path, const std::vector<float>& values, size_t rows, size_t cols);

}  // namespace arn::tool
