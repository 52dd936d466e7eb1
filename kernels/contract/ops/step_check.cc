#include "kernels/contract/ops/step_check.h"

#include <cmath>

namespace arn {

Status StepCheck::ValueError(const char* what, uint64_t found, uint64_t expected) const {
  return diag_->Fail(Status::kBadArgument,
                     "program step %u (%s, layer %u): %s is %llu, expected %llu", index_,
                     OpName(step_.op()), step_.layer, what, static_cast<unsigned long long>(found),
                     static_cast<unsigned long long>(expected));
}

Status StepCheck::UnsupportedError(const char* what, const char* problem) const {
  return diag_->Fail(Status::kUnsupported, "program step %u (%s, layer %u): %s %s", index_,
                     OpName(step_.op()), step_.layer, what, problem);
}

Status StepCheck::Matrix(WeightId id, uint32_t rows, uint32_t cols) const {
  if (id >= program_.weights.size()) return ValueError("weight", id, 0);
  const Weight& weight = program_.weights[id];
  if (weight.is_vector) return ValueError("weight is a vector", 1, 0);
  ARN_TRY(Equals("weight rows", weight.rows, rows));
  return Equals("weight columns", weight.cols, cols);
}

Status StepCheck::Vector(const char* what, WeightId id, uint32_t size) const {
  if (id >= program_.weights.size()) return ValueError(what, id, 0);
  const Weight& weight = program_.weights[id];
  if (weight.dtype != DType::kF32 || weight.layout.order != WeightOrder::kRows ||
      weight.rows != 1) {
    return UnsupportedError(what, "is not an f32 vector");
  }
  return Equals(what, weight.cols, size);
}

Status StepCheck::Norm(NormKind kind, WeightId weight, WeightId bias, uint32_t width) const {
  ARN_TRY(Vector("norm weight", weight, width));
  return kind == NormKind::kLayer ? Vector("norm bias", bias, width) : Status::kOk;
}

Status StepCheck::FloatRows(const char* what, WeightId id, uint32_t most,
                            const Weight** out) const {
  if (id >= program_.weights.size()) return ValueError("weight", id, 0);
  const Weight& weight = program_.weights[id];
  if (weight.dtype != DType::kF32 || weight.layout.order != WeightOrder::kRows) {
    return UnsupportedError(what, "are not f32 rows");
  }
  if (weight.rows == 0 || weight.rows > most) return ValueError(what, weight.rows, most);
  if (weight.cols == 0 || weight.cols > (1u << 20)) {
    return ValueError("channels", weight.cols, 1u << 20);
  }
  *out = &weight;
  return Status::kOk;
}

Status StepCheck::Positions(WeightId id, uint32_t n_positions, uint32_t width) const {
  if (id >= program_.weights.size()) {
    return ValueError("positions", id, program_.weights.size());
  }
  const Weight& weight = program_.weights[id];
  if (weight.rows < n_positions) return ValueError("positions", weight.rows, n_positions);
  if (weight.dtype != DType::kF32 || weight.layout.order != WeightOrder::kRows) {
    return ValueError("positions' dtype", static_cast<uint32_t>(weight.dtype),
                      static_cast<uint32_t>(DType::kF32));
  }
  return Equals("positions' width", weight.cols, width);
}

Status StepCheck::IsKnown(Activation activation, bool has_gate, float limit) const {
  const auto number = static_cast<uint32_t>(activation);
  const bool needs_gate = activation == Activation::kClampedSwiglu;
  const bool has_limit = std::isfinite(limit) && limit > 0.0f;
  if (number >= kActivationCount || activation == Activation::kXielu ||
      (needs_gate && (!has_gate || !has_limit))) {
    return ValueError("activation", number, 0);
  }
  return Status::kOk;
}

Status StepCheck::Kind(uint32_t index, const AttentionKind** out) const {
  if (index >= program_.kinds.size()) return ValueError("kind", index, program_.kinds.size());
  *out = &program_.kinds[index];
  return (*out)->n_heads == 0 ? ValueError("heads", 0, 1) : Status::kOk;
}

Status StepCheck::PagedKind(uint32_t index, uint32_t group_layer, bool shares_kv,
                            const AttentionKind** out) const {
  ARN_TRY(Kind(index, out));
  const AttentionKind& kind = **out;
  if (kind.group >= program_.kv_groups.size()) {
    return ValueError("group", kind.group, program_.kv_groups.size());
  }
  if (kind.is_cross_attention && !shares_kv) return ValueError("shared keys", 0, 1);
  const KvGroup& group = program_.kv_groups[kind.group];
  if (group_layer >= group.n_layers) return ValueError("group_layer", group_layer, group.n_layers);
  const uint64_t kv_heads = shares_kv ? 0 : (group.keys_only ? 1 : 2) * kind.n_kv_heads;
  return HasWidth("input width", step_.in, (kind.n_heads + kv_heads) * kind.head_dim);
}

Status StepCheck::RelativePositionBias(WeightId id, const AttentionKind& kind,
                                       bool both_ways) const {
  if (id == kNoWeight) return Status::kOk;
  if (id >= program_.weights.size()) return ValueError("relative_position_bias", id, 0);
  const Weight& bias = program_.weights[id];
  if (bias.is_vector || bias.dtype != DType::kF32 || bias.layout.order != WeightOrder::kRows ||
      bias.rows == 0) {
    return ValueError("relative_position_bias' rows", bias.rows, 1);
  }
  if (both_ways && bias.rows % 2 == 0) return ValueError("distances", bias.rows, bias.rows + 1);
  return Equals("relative_position_bias' heads", bias.cols, kind.n_heads);
}

Status StepCheck::State(uint32_t group, uint32_t group_layer, uint32_t offset,
                        uint64_t floats) const {
  if (group >= program_.kv_groups.size()) return ValueError("group", group, 0);
  const KvGroup& slots = program_.kv_groups[group];
  if (group_layer >= slots.n_layers) return ValueError("group_layer", group_layer, slots.n_layers);
  const uint64_t end = offset + floats;
  return end <= slots.state_floats ? Status::kOk
                                   : ValueError("state's end", end, slots.state_floats);
}

}  // namespace arn
