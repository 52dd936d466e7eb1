#include "kernels/contract/check_encoder.h"

#include "kernels/contract/step_check.h"

namespace arn {
namespace {

class Checker : StepCheck {
 public:
  Checker(const Program& program, const Step& step, uint32_t index, Diag* diag)
      : StepCheck(program, step, index, diag) {}

  Status Run() {
    if (index_ >= program_.n_encoder_steps) {
      return ValueError("place in the program", index_, program_.n_encoder_steps);
    }
    if (step_.op == Op::kFeatures) return Exists("output", step_.out);
    if (step_.op == Op::kIm2col) return Im2col();
    if (step_.op == Op::kAddPositions) return AddPositions();
    if (step_.op == Op::kSelfAttention) return SelfAttention();
    return StoreKv();
  }

  Status Values() {
    const bool is_encoder = index_ < program_.n_encoder_steps;
    uint32_t factor = 0;
    for (ValueId id : {step_.in, step_.out, step_.angles, step_.topk, step_.scratch}) {
      if (id >= program_.values.size()) continue;
      const Value& value = program_.values[id];
      if (value.is_encoder != is_encoder) return ValueError("value's part", id, is_encoder ? 1 : 0);
      if (value.row_factor == 0 || (!is_encoder && value.row_factor != 1)) {
        return ValueError("rows' factor", value.row_factor, 1);
      }
      if (factor != 0 && value.row_factor != factor && step_.op != Op::kIm2col) {
        return ValueError("rows' factor", value.row_factor, factor);
      }
      factor = value.row_factor;
    }
    const bool takes_factors = step_.op == Op::kFeatures || step_.op == Op::kIm2col ||
                               step_.op == Op::kLinear || step_.op == Op::kAct;
    if (!takes_factors && factor > 1) return ValueError("rows' factor", factor, 1);
    if (is_encoder &&
        (step_.op == Op::kLogits || step_.op == Op::kQkvRope || step_.op == Op::kAttention ||
         step_.op == Op::kConv || step_.op == Op::kScan || step_.op == Op::kExperts)) {
      return UnsupportedError("step", "is not possible in an encoder");
    }
    if (is_encoder && step_.op == Op::kEmbed && step_.positions != kNoWeight) {
      return UnsupportedError("positions", "of an encoder have a step of their own");
    }
    return Status::kOk;
  }

 private:
  Status Exists(const char* what, ValueId id) {
    return id < program_.values.size() ? Status::kOk : ValueError(what, id, program_.values.size());
  }
  const Value& ValueOf(ValueId id) const { return program_.values[id]; }

  Status Im2col() {
    ARN_TRY(Exists("input", step_.in));
    ARN_TRY(Exists("output", step_.out));
    if (step_.in == step_.out) return ValueError("output", step_.out, kNoValue);
    if (step_.n_taps % 2 == 0) return ValueError("taps", step_.n_taps, step_.n_taps + 1u);
    const Value &in = ValueOf(step_.in), &out = ValueOf(step_.out);
    if (out.row_factor == 0 || in.row_factor % out.row_factor != 0) {
      return ValueError("rows' factor", in.row_factor, out.row_factor);
    }
    return Equals("output width", out.width, uint64_t{step_.n_taps} * in.width);
  }

  Status AddPositions() {
    ARN_TRY(Exists("input", step_.in));
    if (step_.positions >= program_.weights.size()) {
      return ValueError("positions", step_.positions, program_.weights.size());
    }
    const Weight& weight = program_.weights[step_.positions];
    if (weight.dtype != DType::kF32 || weight.layout.order != WeightOrder::kRows) {
      return ValueError("positions' dtype", static_cast<uint32_t>(weight.dtype), 0);
    }
    if (weight.rows < program_.max_encoder_rows) {
      return ValueError("positions", weight.rows, program_.max_encoder_rows);
    }
    return Equals("positions' width", weight.cols, ValueOf(step_.in).width);
  }

  Status SelfAttention() {
    ARN_TRY(Exists("input", step_.in));
    ARN_TRY(Exists("output", step_.out));
    ARN_TRY(Kind());
    const AttentionKind& kind = program_.kinds[step_.kind];
    ARN_TRY(Equals("input width", ValueOf(step_.in).width,
                   uint64_t{kind.n_heads + 2 * kind.n_kv_heads} * kind.head_dim));
    return Equals("output width", ValueOf(step_.out).width, uint64_t{kind.n_heads} * kind.head_dim);
  }

  Status StoreKv() {
    ARN_TRY(Exists("input", step_.in));
    ARN_TRY(Kind());
    const AttentionKind& kind = program_.kinds[step_.kind];
    if (kind.group >= program_.kv_groups.size()) {
      return ValueError("group", kind.group, program_.kv_groups.size());
    }
    const KvGroup& group = program_.kv_groups[kind.group];
    if (!group.is_encoder) return ValueError("encoder group", kind.group, 1);
    if (step_.group_layer >= group.n_layers) {
      return ValueError("group_layer", step_.group_layer, group.n_layers);
    }
    return Equals("input width", ValueOf(step_.in).width,
                  uint64_t{2 * kind.n_kv_heads} * kind.head_dim);
  }

  Status Kind() {
    if (step_.kind >= program_.kinds.size()) {
      return ValueError("kind", step_.kind, program_.kinds.size());
    }
    return program_.kinds[step_.kind].n_heads == 0 ? ValueError("heads", 0, 1) : Status::kOk;
  }
};

}  // namespace

Status CheckEncoderStep(const Program& program, const Step& step, uint32_t index, Diag* diag) {
  return Checker(program, step, index, diag).Run();
}

Status CheckEncoderValues(const Program& program, const Step& step, uint32_t index, Diag* diag) {
  return Checker(program, step, index, diag).Values();
}

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
  const bool has_features = first.op == Op::kFeatures;
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
