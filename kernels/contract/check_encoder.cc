#include "kernels/contract/check_encoder.h"

#include "kernels/contract/check.h"

namespace arn {
namespace {

// True if the run has the features of n_rows rows, without optional ones or with them.
bool HasFeatures(const Program& program, const RunArgs& args, uint64_t n_rows) {
  const Step& first = program.steps[0];
  const auto& features = first.Get<FeaturesParams>();
  if (features.stride != 0) return args.features.size() == n_rows * features.stride;
  const Value& value = program.values[first.out];
  const uint64_t most = n_rows * value.row_factor + value.more_rows;
  const uint64_t n = args.features.size() / value.width;
  return args.features.size() % value.width == 0 && n <= most && n + features.optional_rows >= most;
}

// Checks that the run has the tokens, or the features, of n_rows rows.
Status CheckInput(const Program& program, const RunArgs& args, uint64_t n_rows, Diag* diag) {
  const bool takes_features = program.steps[0].op() == Op::kFeatures;
  const bool has_features =
      takes_features ? HasFeatures(program, args, n_rows) : args.features.empty();
  if (has_features && args.tokens.size() == (takes_features ? 0 : n_rows)) return Status::kOk;
  return diag->Fail(Status::kBadArgument,
                    "encoder input of %llu rows with %zu features and %zu "
                    "tokens",
                    static_cast<unsigned long long>(n_rows), args.features.size(),
                    args.tokens.size());
}

Status CheckParts(const RunArgs& args, uint64_t n_rows, Diag* diag) {
  if (args.parts.empty()) return Status::kOk;
  uint64_t next_row = 0;
  for (const SequenceRows& s : args.parts) {
    if (s.first_row != next_row || s.first_position != 0 || s.n_rows == 0) break;
    next_row += s.n_rows;
  }
  if (next_row == n_rows) return Status::kOk;
  return diag->Fail(Status::kBadArgument, "parts cover %llu of %llu rows in order",
                    static_cast<unsigned long long>(next_row),
                    static_cast<unsigned long long>(n_rows));
}

// A run of the rows of several sequences that keeps nothing.
Status CheckPackedRun(const Program& program, const RunArgs& args, Diag* diag) {
  if (args.sequences.empty() || args.sequences.size() > program.max_pooled_rows ||
      args.logit_rows != LogitRows::kNone || program.n_encoder_steps == 0) {
    return diag->Fail(Status::kBadArgument, "an encoder run of %zu sequences, expected 1 to %u",
                      args.sequences.size(), program.max_pooled_rows);
  }
  uint64_t next_row = 0;
  for (const SequenceRows& s : args.sequences) {
    if (program.pool_rows != 0 && s.n_rows % program.pool_rows != 0) {
      return diag->Fail(Status::kBadArgument, "%u encoder rows, expected a multiple of %u",
                        s.n_rows, program.pool_rows);
    }
    if (s.first_row != next_row || s.first_position != 0 || s.n_rows == 0 ||
        s.n_rows > program.max_context || s.n_rows > program.max_encoder_rows - next_row) {
      return diag->Fail(Status::kBadArgument,
                        "%u encoder rows from %u on, expected at most %u from %llu on, of %u",
                        s.n_rows, s.first_row, program.max_context,
                        static_cast<unsigned long long>(next_row), program.max_encoder_rows);
    }
    next_row += s.n_rows;
  }
  ARN_TRY(CheckParts(args, next_row, diag));
  return CheckInput(program, args, next_row, diag);
}

}  // namespace

Status CheckEncoderTable(const Program& program, uint32_t group, const SequenceRows& sequence,
                         Diag* diag) {
  const KvGroup& g = program.kv_groups[group];
  const PageTable& table = sequence.tables[group];
  if (sequence.encoder_rows == 0) {
    return diag->Fail(Status::kBadState, "the sequence has no encoder output");
  }
  if (table.pages == nullptr || table.n_pages == 0 || table.first_page != 0 ||
      table.pages[0] >= g.active.n_pages || sequence.encoder_rows > g.page_tokens) {
    return diag->Fail(Status::kInternal, "KV group %u: no page for an encoder output of %u rows",
                      group, sequence.encoder_rows);
  }
  return Status::kOk;
}

uint32_t OmittedRows(const Program& program, const RunArgs& args) {
  const Value& value = program.values[program.steps[0].out];
  const uint32_t most = RowsOf(value, RunRows(args));
  return most - static_cast<uint32_t>(args.features.size() / value.width);
}

Status CheckEncoderRun(const Program& program, const RunArgs& args, Diag* diag) {
  if (program.max_pooled_rows != 0) return CheckPackedRun(program, args, diag);
  if (args.sequences.size() != 1 || args.sequences[0].first_row != 0 ||
      args.sequences[0].first_position != 0 || args.logit_rows != LogitRows::kNone ||
      program.n_encoder_steps == 0) {
    return diag->Fail(Status::kBadArgument, "an encoder runs for one sequence at a time");
  }
  const SequenceRows& s = args.sequences[0];
  if (s.n_rows == 0 || s.n_rows > program.max_encoder_rows || s.encoder_rows != s.n_rows) {
    return diag->Fail(Status::kBadArgument, "encoder input of %u rows, expected 1 to %u", s.n_rows,
                      program.max_encoder_rows);
  }
  ARN_TRY(CheckParts(args, s.n_rows, diag));
  ARN_TRY(CheckInput(program, args, s.n_rows, diag));
  for (uint32_t g = 0; g < program.kv_groups.size(); ++g) {
    if (program.kv_groups[g].is_encoder) ARN_TRY(CheckEncoderTable(program, g, s, diag));
  }
  return Status::kOk;
}

}  // namespace arn
