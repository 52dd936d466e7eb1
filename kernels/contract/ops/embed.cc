#include "kernels/contract/ops/op_contract.h"

namespace arn {
namespace {

struct EmbedContract : OpDefaults<EmbedParams> {
  static Status Check(const EmbedParams& p, const StepCheck& check) {
    const Program& program = check.program();
    const uint32_t width = check.Width(check.step().out);
    ARN_TRY(check.Matrix(p.weight, program.vocab, width));
    if (p.embedding_stride != 0 && check.is_encoder()) {
      return check.UnsupportedError("embeddings", "of an encoder are features");
    }
    if (p.embedding_stride != 0 && p.embedding_stride < width) {
      return check.ValueError("embedding stride", p.embedding_stride, width);
    }
    if (p.positions == kNoWeight) return Status::kOk;
    if (check.is_encoder()) {
      return check.UnsupportedError("positions", "of an encoder have a step of their own");
    }
    return check.Positions(p.positions, program.max_context, width);
  }

  // Only the rows looked up are read.
  static void Work(const EmbedParams& p, const StepInRun& run, StepWork* work) {
    const Weight& weight = run.weight(p.weight);
    work->weight_bytes += run.rows * weight.bytes / weight.rows;
    if (p.positions == kNoWeight) return;
    work->weight_bytes += run.rows * run.width(run.step.out) * sizeof(float);
  }

  static void Dump(const EmbedParams& p, const Step&, StepText* text) {
    text->PrintWeight("weight", p.weight);
    text->PrintWeight("positions", p.positions);
    text->PrintFloat("factor", p.factor, 1.0f);
  }
};

}  // namespace

constinit const OpContract kEmbedOp =
    MakeOp<EmbedContract>("embed", kHasOut | kInEncoder | kInDecoder);

}  // namespace arn
