// Reads one tensor of a bundle's index as a Weight.
#pragma once

#include <cstdint>

#include "kernels/contract/weight.h"
#include "platform/base/diag.h"
#include "runtime/bundle/bundle.h"

namespace arn {

// Bounds far above any known model. They keep size products in 64 bits and limit the memory that a
// hostile bundle can request.
inline constexpr uint32_t kMaxWidth = 1u << 20;
inline constexpr uint32_t kMaxVocab = 1u << 22;

// Checks type, layout and shape, and that the segment is large enough. The weight's data points
// into the bundle.
Status ReadTensor(const Bundle& bundle, const fbs::Tensor& tensor, Weight* out, Diag* diag);

}  // namespace arn
