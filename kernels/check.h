// What every backend demands of a Program and of a run. Programs come from bundles, so the checks
// are complete: a backend that has passed them indexes without looking.
#pragma once

#include "kernels/backend.h"
#include "kernels/program.h"

namespace arn {

// Every id in range, every shape fits its neighbours, every KV group fits its pages. kUnsupported
// or kBadArgument with the step's number and what was expected. Does not read Weight::data.
Status CheckProgram(const Program& program, Diag* diag);

// Rows, tokens, positions and page tables of one run. `n_logit_rows` receives how many rows of
// logits were asked for.
Status CheckRun(const Program& program, const RunArgs& args, uint32_t* n_logit_rows, Diag* diag);

// Rows of a run: its tokens, or those of the source.
inline uint32_t RunRows(const RunArgs& args) {
  if (!args.is_source) return static_cast<uint32_t>(args.tokens.size());
  return args.sequences.empty() ? 0 : args.sequences[0].n_rows;
}

// Calls visit(row) for each row of a run that wants logits, in order.
template <typename Visit>
void ForEachLogitRow(const RunArgs& args, Visit visit) {
  if (args.logit_rows == LogitRows::kNone) return;
  for (const SequenceRows& s : args.sequences) {
    const uint32_t first = args.logit_rows == LogitRows::kAll ? 0 : s.n_rows - 1;
    for (uint32_t i = first; i < s.n_rows; ++i) visit(s.first_row + i);
  }
}

// Calls visit(row, sequence, position) for each row of a run, in order.
template <typename Visit>
void ForEachRow(const RunArgs& args, Visit visit) {
  for (const SequenceRows& s : args.sequences) {
    for (uint32_t i = 0; i < s.n_rows; ++i) visit(s.first_row + i, s, s.first_position + i);
  }
}

}  // namespace arn
