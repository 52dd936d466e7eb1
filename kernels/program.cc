#include "kernels/program.h"

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
  }
  return "unknown op";
}

bool NormsSpanHeads(const Program& program, const Step& step) {
  const WeightId id = step.q_norm != kNoWeight ? step.q_norm : step.k_norm;
  return id != kNoWeight && program.weights[id].cols > program.kinds[step.kind].head_dim;
}

}  // namespace arn
