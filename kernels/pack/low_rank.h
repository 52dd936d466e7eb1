// Packs the matrices of low-rank changes (kernels/contract/adapter.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/base/dtype.h"

namespace arn {

// Write matrix [outputs, inputs] as A, or as the B of a block: LowRankABytes, or LowRankBBytes.
// kInt8, kInt4: round to the nearest, with a scale for each output of A, and each panel of B. The
// scale of kInt4 is the one of a few that gives the least squared error.
// REQUIRES: dtype is kInt8, kInt4, kF16 or kF32; the values are finite in it.
void PackLowRankA(DType dtype, const float* matrix, uint32_t outputs, uint32_t inputs,
                  std::byte* to);
void PackLowRankB(DType dtype, const float* matrix, uint32_t outputs, uint32_t inputs,
                  std::byte* to);

}  // namespace arn
