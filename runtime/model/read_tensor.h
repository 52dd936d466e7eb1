// One tensor of a bundle's index as a Weight.
#pragma once

#include <cstdint>

#include "kernels/weight.h"
#include "platform/base/diag.h"
#include "runtime/bundle/bundle.h"

namespace arn {

// Bounds far above any known model. They keep products of sizes in 64 bits and stop a hostile
// bundle from asking for absurd memory.
inline constexpr uint32_t kMaxWidth = 1u << 20;
inline constexpr uint32_t kMaxVocab = 1u << 22;

// Checks type, layout, shape and that the segment has the bytes that these take. The weight's data
// points into the bundle.
Status ReadTensor(const Bundle& bundle, const fbs::Tensor& tensor, Weight* out, Diag* diag);

}  // namespace arn
