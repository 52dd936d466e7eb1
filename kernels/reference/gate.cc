#include <cmath>

#include "kernels/reference/ops.h"

namespace arn::reference {
namespace {

void Multiply(const GateArgs& args, const float* gate, uint32_t n, float* x) {
  for (uint32_t i = 0; i < n; ++i) {
    float factor = gate[i];
    Act(&factor, 1, args.activation, nullptr);
    x[i] *= factor;
  }
}

void MultiplyHeads(uint32_t head_dim, const float* gate, uint32_t n, float* x) {
  for (uint32_t i = 0; i < n; ++i) {
    const double z = static_cast<double>(gate[i / head_dim]);
    const double softplus = std::fmax(z, 0.0) + std::log1p(std::exp(-std::fabs(z)));
    x[i] = static_cast<float>(static_cast<double>(x[i]) * softplus);
  }
}

void NormGroups(const GateArgs& args, uint32_t n, float* x) {
  for (uint32_t first = 0; first < n; first += args.norm_group) {
    const float* weight = args.norm + (args.norm_repeats ? 0 : first);
    const NormArgs norm = {NormKind::kRms, weight, nullptr, args.epsilon, false};
    Norm(norm, x + first, args.norm_group, x + first);
  }
}

}  // namespace

// The gated norms of Dao and Gu, 2024 (after the gate) and Yang et al., 2024 (before it); without a
// norm, the output gate of attention (Qiu et al., "Gated Attention for Large Language Models",
// 2025).
void Gate(const GateArgs& args, const float* gate, uint32_t n, float* x) {
  if (args.head_dim != 0) return MultiplyHeads(args.head_dim, gate, n, x);
  if (args.norm != nullptr && args.norms_first) NormGroups(args, n, x);
  Multiply(args, gate, n, x);
  if (args.norm != nullptr && !args.norms_first) NormGroups(args, n, x);
}

}  // namespace arn::reference
