#include "kernels/contract/check.h"
#include "kernels/contract/ops/op_contract.h"

namespace arn {
namespace {

struct LogitsContract : OpDefaults<LogitsParams> {
  static void Operands(const LogitsParams& p, StepOperands* out) {
    out->AddWeight(p.norm);
    out->AddWeight(p.bias);
    out->first_matrix = p.weight;
    out->n_matrices = 1;
  }

  static Status Check(const LogitsParams& p, const StepCheck& check) {
    const Program& program = check.program();
    const uint64_t need = uint64_t{program.max_logit_rows} * program.vocab * sizeof(float);
    if (program.logits.bytes < need) {
      return check.ValueError("bytes of the logits", program.logits.bytes, need);
    }
    const uint32_t width = check.Width(check.step().in);
    ARN_TRY(check.Norm(p.norm_kind, p.norm, p.bias, width));
    return check.Matrix(p.weight, program.vocab, width);
  }

  static void Work(const LogitsParams& p, const StepInRun& run, StepWork* work) {
    uint64_t n = 0;
    ForEachLogitRow(run.args, [&](uint32_t) { ++n; });
    if (n == 0) {
      *work = StepWork();  // not even the norm
      return;
    }
    work->weight_bytes += run.weight(p.weight).bytes;
    AddMatmul(run.weight(p.weight), n, work);
  }

  static void Dump(const LogitsParams& p, const Step&, StepText* text) {
    text->PrintWeight("norm", p.norm);
    text->PrintWeight("weight", p.weight);
    text->PrintWeight("bias", p.bias);
    text->Print(" %s", p.norm_kind == NormKind::kRms ? "rms" : "layer");
    text->PrintFloat("factor", p.factor, 1.0f);
    text->PrintFloat("softcap", p.softcap, 0.0f);
  }
};

}  // namespace

constinit const OpContract kLogitsOp = MakeOp<LogitsContract>("logits", kHasIn | kInDecoder);

}  // namespace arn
