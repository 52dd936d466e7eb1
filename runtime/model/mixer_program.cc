#include "runtime/model/mixer_program.h"

namespace arn {

void AddMixer(const LayerSpec& layer, const LayerKindSpec& kind, const Step& base, ValueId in,
              const MixerValues& v, StepList* steps) {
  const auto add = [&](Op op, ValueId from, ValueId to, WeightId weight) {
    Step step = base;
    step.op = op;
    step.in = from;
    step.out = to;
    step.weight = weight;
    step.activation = kind.activation;
    step.activation_limit = kind.activation_limit;
    step.group = static_cast<uint16_t>(kind.group);
    if (op == Op::kConv) {
      step.bias = layer.conv_bias;
      step.is_gated = kind.mixer == Mixer::kConv;
    }
    if (op == Op::kScan) {
      step.state_offset = kind.conv_floats();
      step.time_steps = v.time_steps;
      step.mix = v.mix;
      step.skip = layer.scan_skip;
    }
    steps->Add(step);
  };
  add(Op::kLinear, in, v.mixed, layer.mixer_in);
  add(Op::kConv, v.mixed, v.convolved, layer.conv);
  if (kind.mixer == Mixer::kConv) return;
  add(Op::kAct, v.convolved, kNoValue, kNoWeight);
  add(Op::kLinear, v.convolved, v.low, layer.scan_low);
  add(Op::kLinear, v.low, v.time_steps, layer.scan_steps);
  add(Op::kLinear, v.convolved, v.mix, layer.scan_mix);
  // The scan's result replaces x, next to its gate.
  add(Op::kScan, v.convolved, v.mixed, layer.scan_rates);
  add(Op::kGatedAct, v.mixed, v.convolved, kNoWeight);
}

}  // namespace arn
