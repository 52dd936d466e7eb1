// The checks of CheckRun for layers with a fixed-size state.
#pragma once

#include <cstdint>

#include "kernels/contract/backend.h"
#include "kernels/contract/program.h"
#include "platform/base/diag.h"

namespace arn {

// Checks a sequence's table in a group of states (PageTable in kernels/contract/kv_view.h).
Status CheckStateTable(const Program& program, uint32_t group, const SequenceRows& rows,
                       Diag* diag);

}  // namespace arn
