#include "kernels/contract/program.h"

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
    case Op::kFeatures: return "features";
    case Op::kIm2col: return "unfold";
    case Op::kAddPositions: return "add_positions";
    case Op::kSelfAttention: return "self_attention";
    case Op::kStoreKv: return "store_kv";
  }
  return "unknown op";
}

const char* ActivationName(Activation activation) {
#define ARN_CASE(enumerator, value, name) \
  case Activation::enumerator: return #name;
  switch (activation) { ARN_ACTIVATIONS(ARN_CASE) }
#undef ARN_CASE
  return "unknown activation";
}

AttentionKind WithoutQueries(AttentionKind kind) {
  kind.n_heads = 0;
  return kind;
}

float QueryTemperature(const AttentionKind& kind, uint32_t position) {
  if (kind.query_temperature == 0.0f) return 1.0f;
  const auto steps = static_cast<float>((position + 1) / kind.query_temperature_step);
  return 1.0f + kind.query_temperature * std::log1p(steps);
}

Span<const Step> StepsOf(const Program& program, bool is_encoder) {
  const size_t n = program.n_encoder_steps;
  return is_encoder ? program.steps.subspan(0, n)
                    : program.steps.subspan(n, program.steps.size() - n);
}

uint64_t MaxRowsOf(const Program& program, const Value& value) {
  return uint64_t{value.row_factor} *
         (value.is_encoder ? program.max_encoder_rows : program.max_rows);
}

bool NormsSpanHeads(const Program& program, const Step& step) {
  const WeightId id = step.q_norm != kNoWeight ? step.q_norm : step.k_norm;
  return id != kNoWeight && program.weights[id].cols > program.kinds[step.kind].head_dim;
}

}  // namespace arn
