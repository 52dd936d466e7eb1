// Validation of a Program and of a run, common to all backends. Programs come from bundles, so the
// checks are complete: a backend indexes without further bounds checks once they pass.
#pragma once

#include "kernels/contract/backend.h"
#include "kernels/contract/program.h"

namespace arn {

// Checks that every id is in range, every shape fits its neighbours and every KV group fits its
// pages. Does not read Weight::data. Returns kUnsupported or kBadArgument with the step's index and
// the expected value.
Status CheckProgram(const Program& program, Diag* diag);

// Checks the rows, tokens, positions and page tables of one run. `n_logit_rows` receives the number
// of logit rows requested.
Status CheckRun(const Program& program, const RunArgs& args, uint32_t* n_logit_rows, Diag* diag);

// Returns the number of rows of a run: its tokens, or its encoder rows.
inline uint32_t RunRows(const RunArgs& args) {
  if (!args.is_encoder) return static_cast<uint32_t>(args.tokens.size());
  if (args.sequences.empty()) return 0;
  const SequenceRows& last = args.sequences[args.sequences.size() - 1];
  return last.first_row + last.n_rows;
}

// Returns the number of pooled rows of an encoder run that pools.
inline uint32_t PooledRows(const Program& program, const RunArgs& args) {
  return program.pool_rows == 0 ? static_cast<uint32_t>(args.sequences.size())
                                : RunRows(args) / program.pool_rows;
}

// Returns the rows that become pooled row i.
struct RowRange {
  uint32_t first, n;
};
inline RowRange RowsOfPooled(const Program& program, const RunArgs& args, uint32_t i) {
  if (program.pool_rows != 0) return {i * program.pool_rows, program.pool_rows};
  return {args.sequences[i].first_row, args.sequences[i].n_rows};
}

// Returns the row that a token takes in place of its embedding; null: none. stride: columns of a
// row; 0: tokens take none.
inline const float* EmbeddingOf(const RunArgs& args, uint32_t stride, int32_t token) {
  if (token >= 0 || stride == 0) return nullptr;
  return args.embeddings.data() + static_cast<uint64_t>(-1 - int64_t{token}) * stride;
}

// True if the step works on pooled rows. kPool itself reads rows.
inline bool IsPooled(const Program& program, const Step& step) {
  return step.in != kNoValue && program.values[step.in].is_pooled;
}

// Calls visit(row) for each row of a run that needs logits, in order.
template <typename Visit>
void ForEachLogitRow(const RunArgs& args, Visit visit) {
  if (args.logit_rows == LogitRows::kNone) return;
  for (const SequenceRows& s : args.sequences) {
    const uint32_t first =
        args.logit_rows == LogitRows::kAll ? 0 : s.n_rows - 1 - s.more_logit_rows;
    for (uint32_t i = first; i < s.n_rows; ++i) visit(s.first_row + i);
  }
}

// Returns a row's position in its text, of one at `position` of its sequence.
inline uint32_t TextPosition(const RunArgs& args, uint32_t row, uint32_t position) {
  const bool has_own = args.mask != nullptr && args.mask->positions != nullptr;
  return has_own ? args.mask->positions[row] : position;
}

// Returns the positions that pairs of a row turn by: [kRopeAxes], or null if it is the one in its
// text for all of them.
inline const uint32_t* AxisPositions(const RunArgs& args, const RopeKind& rope, uint32_t row) {
  if (rope.axes.empty() || args.axis_positions.empty()) return nullptr;
  return args.axis_positions.data() + size_t{row} * kRopeAxes;
}

// Returns the rows that see each other in kSelfAttention.
inline Span<const SequenceRows> AttentionParts(const RunArgs& args, const AttentionKind& kind) {
  return kind.has_parts && !args.parts.empty() ? args.parts : args.sequences;
}

// Returns which positions a row of a sequence, and those after it, attend to.
inline VisibleCells VisibleFrom(const RunArgs& args, const SequenceRows& sequence, uint32_t row) {
  if (args.mask == nullptr || args.mask->visible == nullptr) return {};
  const uint32_t end = sequence.first_position + sequence.n_rows;
  const size_t stride = end - args.mask->first;
  return {args.mask->visible + row * stride, stride, args.mask->first, end};
}

// Calls visit(row, sequence, position) for each row of sequences, in order.
template <typename Visit>
void ForEachRow(Span<const SequenceRows> sequences, Visit visit) {
  for (const SequenceRows& s : sequences) {
    for (uint32_t i = 0; i < s.n_rows; ++i) visit(s.first_row + i, s, s.first_position + i);
  }
}
template <typename Visit>
void ForEachRow(const RunArgs& args, Visit visit) {
  ForEachRow(args.sequences, visit);
}

}  // namespace arn
