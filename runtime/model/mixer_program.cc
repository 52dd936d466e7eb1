#include "runtime/model/mixer_program.h"

namespace arn {

ValueId AddMixer(const LayerSpec& layer, const LayerKindSpec& kind, uint32_t layer_index,
                 ValueId in, const MixerValues& v, StepList* steps) {
  const auto add = [&](const auto& params, ValueId from, ValueId to) {
    steps->Add(Step(params, from, to, layer_index));
  };
  const auto add_linear = [&](ValueId from, ValueId to, WeightId weight) {
    LinearParams linear;
    linear.weight = weight;
    add(linear, from, to);
  };
  add_linear(in, v.mixed, layer.mixer_in);
  ConvParams conv;
  conv.weight = layer.conv;
  conv.bias = layer.conv_bias;
  conv.group = static_cast<uint16_t>(kind.state_group);
  conv.group_layer = static_cast<uint16_t>(layer.state_layer);
  conv.is_gated = kind.mixer == Mixer::kConv;
  add(conv, v.mixed, v.convolved);
  if (kind.mixer == Mixer::kConv) return v.convolved;
  ActParams act;
  act.activation = kind.activation;
  add(act, v.convolved, kNoValue);
  if (kind.is_linear()) {
    LinearAttentionParams linear;
    linear.heads = layer.linear_heads;
    linear.gates = v.mixed;
    linear.group = conv.group;
    linear.group_layer = conv.group_layer;
    linear.key_dim = static_cast<uint16_t>(kind.linear_key_dim);
    linear.state_offset = kind.conv_floats();
    linear.time_step_low = kind.time_step_low;
    linear.time_step_high = kind.time_step_high;
    linear.has_delta_rule = kind.has_delta_rule;
    linear.doubles_betas = kind.doubles_betas;
    add(linear, v.convolved, v.out);
    GateParams gate;
    gate.norm = layer.mixer_norm;
    gate.norm_group = kind.mixer_norm_group;
    gate.epsilon = kind.mixer_norm_epsilon != 0.0f ? kind.mixer_norm_epsilon : kind.norm_epsilon;
    gate.gate = v.mixed;
    gate.norms_first = kind.norms_before_gate;
    add(gate, v.out, kNoValue);
    return v.out;
  }
  const auto add_norm = [&](ValueId value, WeightId weight, uint32_t group) {
    if (weight == kNoWeight) return;
    NormParams norm;
    norm.weight = weight;
    norm.epsilon = kind.scan_norm_epsilon;
    norm.group = group;
    add(norm, value, value);
  };
  add_linear(v.convolved, v.low, layer.scan_low);
  add_norm(v.low, layer.scan_low_norm, kind.scan_rank);
  add_linear(v.low, v.time_steps, layer.scan_steps);
  add_linear(v.convolved, v.mix, layer.scan_mix);
  add_norm(v.mix, layer.scan_mix_norm, kind.scan_states);
  ScanParams scan;
  scan.rates = layer.scan_rates;
  scan.skip = layer.scan_skip;
  scan.time_steps = v.time_steps;
  scan.mix = v.mix;
  scan.group = conv.group;
  scan.group_layer = conv.group_layer;
  scan.state_offset = kind.conv_floats();
  // The scan's result replaces x, next to its gate.
  add(scan, v.convolved, v.mixed);
  GatedActParams gate;
  gate.activation = kind.activation;
  gate.activation_limit = kind.activation_limit;
  add(gate, v.mixed, v.convolved);
  return v.convolved;
}

}  // namespace arn
