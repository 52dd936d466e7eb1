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
  if (args.norm != nullptr && args.norms_first) NormGroups(args, n, x);
  Multiply(args, gate, n, x);
  if (args.norm != nullptr && !args.norms_first) NormGroups(args, n, x);
}

}  // namespace arn::reference
