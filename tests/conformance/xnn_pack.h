// XNNPACK's packers, called as its fully-connected operators do: the reference for kernels/pack.
#pragma once

#include <cstdint>
#include <vector>

#include "program_builder.h"

namespace arn::conformance {

// REQUIRES: `matrix` is f32, int8 or int4, `layout` is kPanels. Sets bytes to 0 that XNNPACK leaves
// unset.
std::vector<uint8_t> XnnPack(const Matrix& matrix, const WeightLayout& layout);

}  // namespace arn::conformance
