// The checks of CheckRun for the encoder and cross-attention.
#pragma once

#include <cstdint>

#include "kernels/contract/backend.h"
#include "kernels/contract/program.h"

namespace arn {

// Checks the encoder page of one sequence of a run.
Status CheckEncoderTable(const Program& program, uint32_t group, const SequenceRows& sequence,
                         Diag* diag);

// Returns how many of the last rows of features a run leaves out. REQUIRES: CheckEncoderRun()
// passed, and the program takes features.
uint32_t OmittedRows(const Program& program, const RunArgs& args);

// Checks a run with is_encoder.
Status CheckEncoderRun(const Program& program, const RunArgs& args, Diag* diag);

}  // namespace arn
