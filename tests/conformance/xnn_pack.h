// XNNPACK's packers, as its fully-connected operators call them: what kernels/pack is held against.
#pragma once

#include <cstdint>
#include <vector>

#include "program_builder.h"

namespace arn::conformance {

// `matrix` is f32, int8 or int4, `layout` kPanels. Bytes that XNNPACK leaves unset are 0.
std::vector<uint8_t> XnnPack(const Matrix& matrix, const WeightLayout& layout);

}  // namespace arn::conformance
