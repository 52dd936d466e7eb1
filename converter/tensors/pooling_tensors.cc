// Token types, and layers over pooled rows.
#include "converter/base/error.h"
#include "converter/tensors/planner.h"
#include "kernels/contract/step.h"

namespace arn::convert {
namespace {

// Takes a tensor of another checkpoint.
const Checkpoint::Entry* TakeFrom(const Checkpoint& checkpoint, const std::string& name,
                                  const std::vector<uint64_t>& shape) {
  const Checkpoint::Entry* entry = checkpoint.Find(name);
  if (entry == nullptr) Fail("a Dense module lacks the tensor %s", name.c_str());
  if (entry->tensor->shape != shape) {
    Fail("%s: tensor %s: expected shape %s, found %s", entry->file->path().c_str(), name.c_str(),
         ShapeText(shape).c_str(), ShapeText(entry->tensor->shape).c_str());
  }
  if (!Checkpoint::IsFloat(*entry->tensor)) {
    Fail("%s: tensor %s: type %s", entry->file->path().c_str(), name.c_str(),
         entry->tensor->dtype.c_str());
  }
  return entry;
}

}  // namespace

void Planner::AddTokenTypes() {
  SourcePart part;
  part.weight =
      sources_.Take(WeightName(spec_.names->token_types), {spec_.n_token_types, spec_.hidden});
  part.rows = 1;
  std::vector<SourcePart> parts(kTokenTypes, part);
  if (spec_.n_token_types > 1) parts[1].first_row = 1;
  plan_.token_types = AddMatrix("token_types", DType::kF32, false, parts, spec_.hidden);
}

void Planner::AddPooling(const Checkpoint::Entry* head) {
  uint32_t cols = spec_.hidden;
  for (const DenseSpec& dense : spec_.pooling.dense) {
    const std::string name = "pooling." + std::to_string(plan_.dense.size());
    const auto take = [&](const std::string& tensor, const std::vector<uint64_t>& shape) {
      return dense.checkpoint != nullptr ? TakeFrom(*dense.checkpoint, tensor, shape)
                                         : sources_.Take(tensor, shape);
    };
    std::vector<SourcePart> parts;
    SourcePart part;
    if (dense.rows.empty()) {
      part.weight = take(WeightName(dense.weight), {dense.width, cols});
      if (dense.has_bias) part.bias = take(dense.weight + ".bias", {dense.width});
      part.rows = dense.width;
      parts.push_back(part);
    }
    for (const uint32_t row : dense.rows) {
      part.weight = head;
      part.rows = 1;
      part.first_row = row;
      part.factor = spec_.logits_factor;
      if (spec_.has_head_bias) {
        part.bias = sources_.Take(std::string(spec_.names->head) + ".bias", {spec_.vocab});
      }
      parts.push_back(part);
    }
    TensorPlan::Dense planned;
    planned.weight =
        AddMatrix(name, dense.is_exact ? DType::kF32 : formats_.weights, true, parts, cols);
    if (!dense.norm.empty()) {
      AddNorm(name + ".norm", dense.norm, NormKind::kLayer, dense.width, &planned.norm,
              &planned.norm_bias);
    }
    plan_.dense.push_back(planned);
    cols = dense.width;
  }
}

}  // namespace arn::convert
