#include "kernels/contract/ops/op_contract.h"

namespace arn {
namespace {

struct AddEmbeddingsContract : OpDefaults<AddEmbeddingsParams> {
  static Status Check(const AddEmbeddingsParams& p, const StepCheck& check) {
    uint32_t stride = 0;
    for (const Step& step : check.program().steps) {
      const auto* embed = step.If<EmbedParams>();
      if (embed != nullptr && embed->embedding_stride != 0) stride = embed->embedding_stride;
    }
    ARN_TRY(check.Equals("embedding stride", p.stride, stride));
    const uint32_t width = check.Width(check.step().in);
    if (p.first <= stride && width <= stride - p.first) return Status::kOk;
    return check.ValueError("first column", p.first, stride < width ? 0 : stride - width);
  }

  static void Dump(const AddEmbeddingsParams& p, const Step&, StepText* text) {
    text->Print(" from column %u", p.first);
  }
};

}  // namespace

constinit const OpContract kAddEmbeddingsOp =
    MakeOp<AddEmbeddingsContract>("add_embeddings", kHasIn | kInDecoder);

}  // namespace arn
