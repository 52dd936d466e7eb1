// The packed layout that this CPU's kernels read in place.
#pragma once

#include "kernels/contract/weight.h"

namespace arn {

// Returns the layout that kernels on this CPU read directly from Weight::data; matrices in other
// layouts are repacked at load. kRows if the CPU is unknown.
WeightLayout NativeLayout(DType dtype);

}  // namespace arn
