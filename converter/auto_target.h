// --target auto: the packed layout that suits the machine on which the converter runs.
#pragma once

#include "kernels/pack/pack.h"

namespace arn::convert {

// Never null: "portable" when nothing better is known. A bundle packed for one CPU works on every
// other; there its matrices are packed anew when they are loaded.
const PackTarget* AutoTarget();

}  // namespace arn::convert
