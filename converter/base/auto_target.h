// --target auto: chooses the packed weight layout for the CPU that runs the converter.
#pragma once

#include "kernels/pack/pack.h"

namespace arn::convert {

// Never returns null: falls back to "portable". A bundle packed for one CPU runs on every other;
// its matrices are repacked at load.
const PackTarget* AutoTarget();

}  // namespace arn::convert
