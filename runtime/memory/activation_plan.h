// Assigns activation offsets by lifetime: values that are never alive at the same step share bytes.
#pragma once

#include "kernels/contract/program.h"
#include "platform/base/layout.h"
#include "platform/base/span.h"

namespace arn {

// Sets the slice of every value (f32). Greedy: largest value first, each at the lowest offset free
// during its lifetime; a view at the offset of the value it views. Cubic in the number of values
// that are no views, about ten for a decoder.
Status PlanActivations(const Program& program, Layout* layout);

}  // namespace arn
