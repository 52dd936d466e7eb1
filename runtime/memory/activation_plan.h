// Places activations by lifetime: values that are never alive at the same step share bytes.
#pragma once

#include "kernels/program.h"
#include "platform/base/layout.h"
#include "platform/base/span.h"

namespace arn {

// Sets the slice of every value (f32). Greedy: the largest value first, each at the
// lowest offset that is free during its lifetime. Quadratic in the number of values, of which a
// decoder has about ten.
Status PlanActivations(const Program& program, Layout* layout);

}  // namespace arn
