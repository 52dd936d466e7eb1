// The parts of CheckProgram and CheckRun that are about layers with a state of a fixed size.
#pragma once

#include <cstdint>

#include "kernels/backend.h"
#include "kernels/program.h"
#include "platform/base/diag.h"

namespace arn {

// A step of kConv or kScan: its values, weights and place in its group's slots. `index`: its number
// in the program, for the message.
Status CheckStateStep(const Program& program, const Step& step, uint32_t index, Diag* diag);

// The table of a sequence's rows in a group of states: PageTable in kernels/kv_view.h.
Status CheckStateTable(const Program& program, uint32_t group, const SequenceRows& rows,
                       Diag* diag);

}  // namespace arn
