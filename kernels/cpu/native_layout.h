// Which packed layout this machine's kernels read in place.
#pragma once

#include "kernels/weight.h"

namespace arn {

// The layout of kF32, kInt8 and kInt4 matrices that is used straight from Weight::data on this CPU;
// others are repacked at load. kRows for kF16 and kBf16, and for all when the CPU is unknown.
WeightLayout NativeLayout(DType dtype);

}  // namespace arn
