// Assigns activation offsets by lifetime: values that are never alive at the same step share bytes.
#pragma once

#include "kernels/contract/program.h"
#include "platform/base/layout.h"
#include "platform/base/span.h"

namespace arn {

// Sets the slice of every value (f32). Greedy: largest value first, each at the lowest offset free
// during its lifetime. Quadratic in the number of values, about ten for a decoder.
Status PlanActivations(const Program& program, Layout* layout);

}  // namespace arn
