#include "runtime/model/layer_program.h"

#include "runtime/model/mixer_program.h"

namespace arn {

void AddLayer(const LayerSpec& layer, const LayerKindSpec& kind, const LayerPlace& place,
              const LayerValues& v, const ValueId* angles, StepList* builder) {
  Step base;
  base.layer = static_cast<uint16_t>(place.index);
  base.kind = static_cast<uint16_t>(place.kind);
  base.group_layer = static_cast<uint16_t>(layer.group_layer);
  base.epsilon = kind.norm_epsilon;

  auto add = [&](Op op, ValueId in, ValueId out, WeightId weight) {
    Step step = base;
    step.op = op;
    step.in = in;
    step.out = out;
    step.weight = weight;
    step.activation = kind.activation;
    step.activation_limit = kind.activation_limit;
    step.accumulate = out == v.x;
    step.shares_kv = layer.shares_kv && (op == Op::kQkvRope || op == Op::kAttention);
    if (op == Op::kRoute || op == Op::kExperts) {
      step.n_experts = static_cast<uint16_t>(kind.n_experts);
      step.n_chosen = static_cast<uint16_t>(kind.n_experts_used);
      step.norm_topk_prob = kind.norm_topk_prob;
      step.route_score = kind.route_score;
      step.weighs_input = kind.weighs_input;
    }
    if (op == Op::kExperts) {
      step.topk = v.topk;
      step.scratch = v.expert_scratch;
    }
    if (op == Op::kAttention) step.sinks = layer.sinks;
    if (op == Op::kAttention || op == Op::kSelfAttention) {
      step.relative_position_bias = layer.relative_position_bias;
    }
    if (op == Op::kQkvRope) {
      if (kind.rope != kNoRope) step.angles = angles[kind.rope];
      step.q_norm = layer.q_norm;
      step.k_norm = layer.k_norm;
    }
    builder->Add(step);
  };
  // Adds a norm of x into `out`; returns x itself if there is no norm.
  auto pre_norm = [&](ValueId out, WeightId weight, WeightId bias) {
    if (weight == kNoWeight) return v.x;
    Step step = base;
    step.op = Op::kNorm;
    step.norm_kind = kind.norm;
    step.in = v.x;
    step.out = out;
    step.weight = weight;
    step.bias = bias;
    builder->Add(step);
    return out;
  };
  // Adds x += matrix(in), through `branch` and a norm if there is one.
  auto add_block = [&](ValueId in, WeightId matrix, ValueId branch, WeightId norm) {
    if (norm == kNoWeight) return add(Op::kLinear, in, v.x, matrix);
    add(Op::kLinear, in, branch, matrix);
    add(Op::kNorm, branch, v.x, norm);
  };
  const ValueId attention_in = pre_norm(v.normed, layer.attention_norm, layer.attention_norm_bias);
  ValueId ffn_in = kNoValue;
  if (kind.is_parallel) ffn_in = pre_norm(v.ffn_normed, layer.ffn_norm, layer.ffn_norm_bias);
  if (kind.has_state()) {
    AddMixer(layer, kind, base, attention_in, v.mixer, builder);
  } else {
    add(Op::kLinear, attention_in, v.qkv, layer.qkv);
    if (!place.is_encoder) add(Op::kQkvRope, v.qkv, kNoValue, kNoWeight);
    add(place.is_encoder ? Op::kSelfAttention : Op::kAttention, v.qkv, v.attention, kNoWeight);
  }
  add_block(kind.has_state() ? v.mixer.convolved : v.attention, layer.attention_out, v.normed,
            layer.attention_post_norm);
  if (layer.cross_q != kNoWeight) {
    const ValueId in = pre_norm(v.normed, layer.cross_norm, layer.cross_norm_bias);
    add(Op::kLinear, in, v.cross_q, layer.cross_q);
    Step step = base;
    step.op = Op::kAttention;
    step.kind = static_cast<uint16_t>(place.cross_kind);
    step.group_layer = static_cast<uint16_t>(layer.cross_layer);
    step.shares_kv = true;
    step.in = v.cross_q;
    step.out = v.attention;
    builder->Add(step);
    add(Op::kLinear, v.attention, v.x, layer.cross_out);
  }
  if (kind.ffn_dim == 0) return;
  if (!kind.is_parallel) ffn_in = pre_norm(v.ffn_normed, layer.ffn_norm, layer.ffn_norm_bias);
  if (kind.n_experts != 0) {
    add(Op::kLinear, ffn_in, v.route_logits, layer.router);
    add(Op::kRoute, v.route_logits, v.topk, kNoWeight);
    add(Op::kExperts, ffn_in, v.x, layer.experts);
    if (kind.shared_ffn_dim == 0) return;
    add(Op::kLinear, ffn_in, v.shared_gate_up, layer.shared_gate_up);
    add(Op::kGatedAct, v.shared_gate_up, v.shared_activated, kNoWeight);
    add(Op::kLinear, v.shared_activated, v.x, layer.shared_down);
    return;
  }
  add(Op::kLinear, ffn_in, v.gate_up, layer.gate_up);
  ValueId activated = v.activated;
  if (kind.is_gated) {
    add(Op::kGatedAct, v.gate_up, activated, kNoWeight);
  } else {
    activated = v.gate_up;
    add(Op::kAct, v.gate_up, kNoValue, kNoWeight);
  }
  add_block(activated, layer.down, v.ffn_normed, layer.ffn_post_norm);
}

}  // namespace arn
