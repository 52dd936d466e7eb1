// The encoder and cross-attention checks of check.h.
#pragma once

#include <cstdint>

#include "kernels/contract/backend.h"
#include "kernels/contract/program.h"

namespace arn {

// Checks a step of one of the ops kFeatures to kStoreKv.
Status CheckEncoderStep(const Program& program, const Step& step, uint32_t index, Diag* diag);

// Checks that encoder steps and decoder steps share no values, and that row counts match.
Status CheckEncoderValues(const Program& program, const Step& step, uint32_t index, Diag* diag);

// Checks the encoder page of one sequence of a run.
Status CheckEncoderTable(const Program& program, uint32_t group, const SequenceRows& sequence,
                         Diag* diag);

// Checks a run with is_encoder.
Status CheckEncoderRun(const Program& program, const RunArgs& args, Diag* diag);

}  // namespace arn
