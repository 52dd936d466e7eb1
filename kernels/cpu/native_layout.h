// Which packed layout this machine's kernels read in place.
#pragma once

#include "kernels/weight.h"

namespace arn {

// The layout of matrices that is used straight from Weight::data on this CPU; others are repacked
// at load. kRows when the CPU is unknown.
WeightLayout NativeLayout(DType dtype);

}  // namespace arn
