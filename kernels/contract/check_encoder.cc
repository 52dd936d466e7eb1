#include "kernels/contract/check_encoder.h"

namespace arn {

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

Status CheckEncoderRun(const Program& program, const RunArgs& args, Diag* diag) {
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
  const Step& first = program.steps[0];
  const Value& value = program.values[first.out];
  const uint64_t floats = uint64_t{s.n_rows} * value.row_factor * value.width;
  const bool has_features = first.op() == Op::kFeatures;
  if (args.features.size() != (has_features ? floats : 0) ||
      args.tokens.size() != (has_features ? 0 : s.n_rows)) {
    return diag->Fail(Status::kBadArgument,
                      "encoder input of %u rows with %zu features and %zu tokens", s.n_rows,
                      args.features.size(), args.tokens.size());
  }
  for (uint32_t g = 0; g < program.kv_groups.size(); ++g) {
    if (program.kv_groups[g].is_encoder) ARN_TRY(CheckEncoderTable(program, g, s, diag));
  }
  return Status::kOk;
}

}  // namespace arn
