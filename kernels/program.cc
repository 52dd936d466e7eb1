#include "kernels/program.h"

#include <cmath>

namespace arn {

const char* OpName(Op op) {
  switch (op) {
    case Op::kEmbed: return "embed";
    case Op::kRopeAngles: return "rope_angles";
    case Op::kNorm: return "norm";
    case Op::kLinear: return "linear";
    case Op::kQkvRope: return "qkv_rope";
    case Op::kAttention: return "attention";
    case Op::kGatedAct: return "gated_act";
    case Op::kAct: return "act";
    case Op::kRoute: return "route";
    case Op::kExperts: return "experts";
    case Op::kLogits: return "logits";
    case Op::kConv: return "conv";
    case Op::kScan: return "scan";
  }
  return "unknown op";
}

float QueryTemperature(const AttentionKind& kind, uint32_t position) {
  if (kind.temperature == 0.0f) return 1.0f;
  const auto steps = static_cast<float>((position + 1) / kind.temperature_step);
  return 1.0f + kind.temperature * std::log1p(steps);
}

bool NormsSpanHeads(const Program& program, const Step& step) {
  const WeightId id = step.q_norm != kNoWeight ? step.q_norm : step.k_norm;
  return id != kNoWeight && program.weights[id].cols > program.kinds[step.kind].head_dim;
}

}  // namespace arn
