#include "runtime/model/mixer_program.h"

namespace arn {

void AddMixer(const LayerSpec& layer, const LayerKindSpec& kind, uint32_t layer_index, ValueId in,
              const MixerValues& v, StepList* steps) {
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
  conv.group = static_cast<uint16_t>(kind.group);
  conv.group_layer = static_cast<uint16_t>(layer.group_layer);
  conv.is_gated = kind.mixer == Mixer::kConv;
  add(conv, v.mixed, v.convolved);
  if (kind.mixer == Mixer::kConv) return;
  ActParams act;
  act.activation = kind.activation;
  add(act, v.convolved, kNoValue);
  add_linear(v.convolved, v.low, layer.scan_low);
  add_linear(v.low, v.time_steps, layer.scan_steps);
  add_linear(v.convolved, v.mix, layer.scan_mix);
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
}

}  // namespace arn
