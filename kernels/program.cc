#include "kernels/program.h"

namespace arn {

const char* OpName(Op op) {
  switch (op) {
    case Op::kEmbed: return "embed";
    case Op::kRopeAngles: return "rope_angles";
    case Op::kRmsNorm: return "rms_norm";
    case Op::kLinear: return "linear";
    case Op::kQkvRope: return "qkv_rope";
    case Op::kAttention: return "attention";
    case Op::kGatedAct: return "gated_act";
    case Op::kLogits: return "logits";
  }
  return "unknown op";
}

}  // namespace arn
