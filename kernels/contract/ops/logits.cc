#include "kernels/contract/check.h"
#include "kernels/contract/ops/op_contract.h"

namespace arn {
namespace {

struct LogitsContract : OpDefaults<LogitsParams> {
  static void Operands(const LogitsParams& p, StepOperands* out) {
    out->AddWeight(p.norm);
    out->AddWeight(p.bias);
    if (kHasHeadParts && p.chosen != kNoValue) out->AddValue(p.chosen);
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
    if (kHasHeadParts && p.chosen != kNoValue) {
      if (p.n_parts == 0 || program.vocab % p.n_parts != 0) {
        return check.ValueError("parts of the head", p.n_parts, program.vocab);
      }
      const uint32_t width_of_ids = check.Width(p.chosen);
      if (width_of_ids % 2 != 0 || width_of_ids / 2 > p.n_parts) {
        return check.ValueError("width of the ids of parts", width_of_ids, 2 * p.n_parts);
      }
      if (p.factor != 1.0f || p.softcap != 0.0f) {
        return check.UnsupportedError("parts of the head", "with a factor or a softcap");
      }
    }
    return check.Matrix(p.weight, program.vocab, width);
  }

  static void Work(const LogitsParams& p, const StepInRun& run, StepWork* work) {
    uint64_t n = 0;
    ForEachLogitRow(run.args, [&](uint32_t) { ++n; });
    if (n == 0) {
      *work = StepWork();  // not even the norm
      return;
    }
    Weight read = run.weight(p.weight);
    if (kHasHeadParts && p.chosen != kNoValue) {
      const uint32_t n_chosen = run.width(p.chosen) / 2;
      read.bytes = read.bytes / p.n_parts * n_chosen;
      read.rows = read.rows / p.n_parts * n_chosen;
    }
    work->weight_bytes += read.bytes;
    AddMatmul(read, n, work);
  }

  static void Dump(const LogitsParams& p, const Step&, StepText* text) {
    text->PrintWeight("norm", p.norm);
    text->PrintWeight("weight", p.weight);
    text->PrintWeight("bias", p.bias);
    text->Print(" %s", p.norm_kind == NormKind::kRms ? "rms" : "layer");
    text->PrintFloat("factor", p.factor, 1.0f);
    text->PrintFloat("softcap", p.softcap, 0.0f);
    if (kHasHeadParts && p.chosen != kNoValue)
      text->Print(" chosen %u of %u parts", p.chosen, p.n_parts);
  }
};

}  // namespace

constinit const OpContract kLogitsOp = MakeOp<LogitsContract>("logits", kHasIn | kInDecoder);

}  // namespace arn
