// The part of check.h that is about the source of a sequence.
#pragma once

#include <cstdint>

#include "kernels/backend.h"
#include "kernels/program.h"

namespace arn {

// A step of one of the ops kFeatures to kStoreKv.
Status CheckSourceStep(const Program& program, const Step& step, uint32_t index, Diag* diag);

// That steps of the source and others name no values of each other, and that rows fit.
Status CheckSourceValues(const Program& program, const Step& step, uint32_t index, Diag* diag);

// The page of the source of one sequence of a run.
Status CheckSourceTable(const Program& program, uint32_t group, const SequenceRows& sequence,
                        Diag* diag);

// A run with is_source.
Status CheckSourceRun(const Program& program, const RunArgs& args, Diag* diag);

}  // namespace arn
