// Experts come stored one by one, or all of a layer stacked in one tensor of [experts, inputs,
// outputs]; in families that have both, transformers also stores [experts, outputs, inputs].
#include <cmath>

#include "converter/base/error.h"
#include "converter/tensors/planner.h"

namespace arn::convert {

// Keeps the router in f32: rounding would change which experts a token goes to.
void Planner::AddExperts(const LayerScope& scope, const LayerKindSpec& kind, LayerTensors* layer) {
  const TensorNames& names = *scope.names;
  layer->router = AddMatrix(
      scope.Own("router"), DType::kF32, true,
      {Part(scope.Stored(names.router), kind.n_experts, spec_.hidden, kind.has_router_bias)},
      spec_.hidden);
  const bool is_stacked =
      names.stacked_gate_up != nullptr &&
      (names.expert_gate == nullptr || sources_.Has(scope.Stored(names.stacked_gate_up)));
  if (is_stacked) {
    AddStackedExperts(scope, kind, layer);
  } else {
    AddStoredExperts(scope, kind, layer);
  }
  if (kind.has_router_correction) {
    layer->router_correction = AddRouterCorrection(scope, kind.n_experts);
  }
  if (kind.shared_ffn_dim != 0) AddSharedExpert(scope, kind, layer);
  if (names.router_norm != nullptr) AddExpertNorms(scope, layer);
}

void Planner::AddExpertNorms(const LayerScope& scope, LayerTensors* layer) {
  const TensorNames& names = *scope.names;
  const uint32_t hidden = spec_.hidden;
  const auto add = [&](const char* name, const std::string& stored) {
    return AddVector(scope.Own(name), stored, hidden, spec_.norm_offset);
  };
  layer->router_norm = add("router_norm", scope.Stored(names.router_norm));
  plan_.tensors[layer->router_norm].factor =
      static_cast<float>(1.0 / std::sqrt(static_cast<double>(hidden)));
  layer->experts_norm = add("experts_norm", WeightName(scope.Stored(names.experts_norm)));
  layer->experts_post_norm =
      add("experts_post_norm", WeightName(scope.Stored(names.experts_post_norm)));
  layer->shared_post_norm =
      add("shared_post_norm", WeightName(scope.Stored(names.shared_post_norm)));
}

// Returns what the outputs of the experts are multiplied by.
std::vector<float> Planner::ExpertFactors(const LayerScope& scope, const LayerKindSpec& kind) {
  std::vector<float> factors(kind.n_experts, kind.routed_factor);
  const char* name = scope.names->expert_factors;
  const Checkpoint::Entry* stored =
      name == nullptr ? nullptr : sources_.Take(scope.Stored(name), {kind.n_experts});
  if (stored == nullptr) return factors;
  std::vector<float> own(kind.n_experts);
  Checkpoint::ReadFloats(*stored, 0, kind.n_experts, own.data());
  for (uint32_t e = 0; e < kind.n_experts; ++e) factors[e] *= own[e];
  return factors;
}

// Takes [n] or [1, n].
uint32_t Planner::AddRouterCorrection(const LayerScope& scope, uint32_t n) {
  const std::string name = scope.Stored(scope.names->router_correction);
  const uint32_t index = AddConstant(scope.Own("router_correction"), n, 1.0f);
  const std::vector<uint64_t> as_row = {1, n}, shape = {n};
  SourcePart part;
  part.weight = sources_.Take(name, sources_.Has(name, as_row) ? as_row : shape);
  part.rows = 1;
  plan_.tensors[index].offset = 0.0f;
  plan_.tensors[index].parts = {part};
  return index;
}

void Planner::AddStoredExperts(const LayerScope& scope, const LayerKindSpec& kind,
                               LayerTensors* layer) {
  const TensorNames& names = *scope.names;
  const uint32_t hidden = spec_.hidden, ffn = kind.ffn_dim;
  const bool has_bias = kind.has_mlp_bias && kind.has_expert_bias;
  const std::vector<float> factors = ExpertFactors(scope, kind);
  for (uint32_t e = 0; e < kind.n_experts; ++e) {
    const auto name = [&](const char* pattern) {
      return LayerName(scope.Stored(pattern).c_str(), e);
    };
    const std::string own = scope.Own("experts.") + std::to_string(e);
    std::vector<SourcePart> parts;
    if (kind.is_gated) parts.push_back(Part(name(names.expert_gate), ffn, hidden, has_bias));
    parts.push_back(Part(name(names.expert_up), ffn, hidden, has_bias));
    const uint32_t gate_up =
        AddMatrix(own + ".gate_up", formats_.weights, true, std::move(parts), hidden);
    if (e == 0) layer->experts = gate_up;
    SourcePart out = OutPart(name(names.expert_down), ffn, has_bias);
    out.factor *= factors[e];
    AddMatrix(own + ".down", formats_.weights, true, {out}, ffn);
  }
}

void Planner::AddStackedExperts(const LayerScope& scope, const LayerKindSpec& kind,
                                LayerTensors* layer) {
  const TensorNames& names = *scope.names;
  const uint32_t hidden = spec_.hidden, ffn = kind.ffn_dim, n = kind.n_experts;
  const bool has_bias = kind.has_mlp_bias && kind.has_expert_bias;
  // One expert's part of the stacked tensor.
  struct Stack {
    const Checkpoint::Entry* weight;
    const Checkpoint::Entry* bias;
    uint32_t rows, cols;
    bool is_transposed;

    SourcePart Of(uint32_t e) const {
      SourcePart part;
      part.weight = weight;
      part.bias = bias;
      part.rows = rows;
      part.transposed_rows = is_transposed ? rows : 0;
      part.first_element = uint64_t{e} * rows * cols;
      part.first_bias = uint64_t{e} * rows;
      return part;
    }
  };
  const auto take = [&](const char* pattern, uint32_t rows, uint32_t cols) {
    const std::string name = scope.Stored(pattern);
    const std::vector<uint64_t> by_rows = {n, rows, cols}, by_cols = {n, cols, rows};
    const bool is_transposed = !names.is_stacked_by_rows && !sources_.IsDecoded(name) &&
                               (names.expert_gate == nullptr || !sources_.Has(name, by_rows));
    return Stack{sources_.Take(name, is_transposed ? by_cols : by_rows),
                 has_bias ? sources_.Take(name + "_bias", {n, rows}) : nullptr, rows, cols,
                 is_transposed};
  };
  const Stack gate_up = take(names.stacked_gate_up, 2 * ffn, hidden);
  const Stack down = take(names.stacked_down, hidden, ffn);
  const std::vector<float> factors = ExpertFactors(scope, kind);
  for (uint32_t e = 0; e < n; ++e) {
    const std::string own = scope.Own("experts.") + std::to_string(e);
    std::vector<SourcePart> parts = {gate_up.Of(e)};
    if (spec_.gate_up_alternate) {
      parts.push_back(parts[0]);
      for (uint32_t side = 0; side < 2; ++side) {
        parts[side].rows = ffn;
        parts[side].first_row = side;
        parts[side].block_rows = 1;
        parts[side].block_stride = 2;
      }
    }
    const uint32_t index =
        AddMatrix(own + ".gate_up", formats_.weights, true, std::move(parts), hidden);
    if (e == 0) layer->experts = index;
    SourcePart out = down.Of(e);
    out.factor = spec_.residual_factor * factors[e];
    AddMatrix(own + ".down", formats_.weights, true, {out}, ffn);
  }
}

// Adds the shared expert, which every token passes through.
void Planner::AddSharedExpert(const LayerScope& scope, const LayerKindSpec& kind,
                              LayerTensors* layer) {
  const TensorNames& names = *scope.names;
  const uint32_t hidden = spec_.hidden, ffn = kind.shared_ffn_dim;
  const auto part = [&](const char* pattern, uint32_t rows) {
    return Part(scope.Stored(pattern), rows, hidden, kind.has_mlp_bias);
  };
  std::vector<SourcePart> gate_up;
  if (names.shared_gate_up != nullptr) {
    gate_up = {part(names.shared_gate_up, 2 * ffn)};
  } else {
    if (kind.is_gated) gate_up.push_back(part(names.shared_gate, ffn));
    gate_up.push_back(part(names.shared_up, ffn));
  }
  layer->shared_gate_up =
      AddMatrix(scope.Own("shared_gate_up"), formats_.weights, true, std::move(gate_up), hidden);
  SourcePart out = OutPart(scope.Stored(names.shared_down), ffn, kind.has_mlp_bias);
  out.factor *= kind.shared_factor;
  layer->shared_down = AddMatrix(scope.Own("shared_down"), formats_.weights, true, {out}, ffn);
  if (!kind.has_shared_gate) return;
  // One row: f32 costs nothing, and keeps it exact.
  layer->shared_gate =
      AddMatrix(scope.Own("shared_gate"), DType::kF32, true,
                {Part(scope.Stored(names.shared_gate_score), 1, hidden, false)}, hidden);
}

}  // namespace arn::convert
