// Tensors of layers with a mixer other than attention. Decay rates, convolution weights and the
// bias of the time steps (dt) stay f32.
#include <initializer_list>
#include <utility>

#include "converter/tensors/planner.h"

namespace arn::convert {
namespace {

// Splits a part into row ranges: first row and count.
std::vector<SourcePart> Split(const SourcePart& whole,
                              std::initializer_list<std::pair<uint32_t, uint32_t>> ranges) {
  std::vector<SourcePart> parts;
  for (const auto& [first, rows] : ranges) {
    parts.push_back(whole);
    parts.back().first_row = first;
    parts.back().rows = rows;
  }
  return parts;
}

}  // namespace

// Adds f32 [rows, channels] stored as [channels, rows]: the kernels vectorise over channels.
uint32_t Planner::AddByChannel(const std::string& name, const std::string& source, uint32_t rows,
                               const std::vector<uint64_t>& shape, bool is_negative_log) {
  SourcePart part;
  part.weight = sources_.Take(source, shape);
  part.rows = part.transposed_rows = rows;
  part.is_negative_log = is_negative_log;
  return AddMatrix(name, DType::kF32, false, {part}, static_cast<uint32_t>(shape[0]));
}

void Planner::AddMixer(uint32_t i, const MixerSpec& mixer, LayerTensors* layer) {
  const TensorNames& names = *spec_.names;
  const uint32_t hidden = spec_.hidden, width = mixer.width;
  const auto matrix = [&](const char* name, std::vector<SourcePart> parts, uint32_t cols) {
    return AddMatrix(OwnName(i, name), formats_.weights, true, std::move(parts), cols);
  };
  const bool is_scan = mixer.mixer == Mixer::kScan;
  const SourcePart in =
      Part(LayerName(names.mixer_in, i), (is_scan ? 2 : 3) * width, hidden, mixer.has_bias);
  // The checkpoint stores x, then its gate; the bundle stores the gate first.
  layer->mixer_in = matrix(
      "mixer_in", is_scan ? Split(in, {{width, width}, {0, width}}) : std::vector{in}, hidden);
  const std::string conv = LayerName(names.conv, i);
  layer->conv =
      AddByChannel(OwnName(i, "conv"), WeightName(conv), mixer.taps, {width, 1, mixer.taps}, false);
  if (mixer.has_conv_bias) {
    layer->conv_bias = AddVector(OwnName(i, "conv_bias"), conv + ".bias", width, 0.0f);
  }
  if (!is_scan) return;
  const uint32_t rank = mixer.rank, states = mixer.states;
  const SourcePart inputs = Part(LayerName(names.scan_inputs, i), rank + 2 * states, width, false);
  layer->scan_low = matrix("scan_low", Split(inputs, {{0, rank}}), width);
  layer->scan_mix = matrix("scan_mix", Split(inputs, {{rank, 2 * states}}), width);
  layer->time_steps =
      matrix("scan_steps", {Part(LayerName(names.time_steps, i), width, rank, true)}, rank);
  layer->scan_rates = AddByChannel(OwnName(i, "scan_rates"), LayerName(names.scan_rates, i), states,
                                   {width, states}, spec_.rates_are_logs);
  layer->scan_skip = AddVector(OwnName(i, "scan_skip"), LayerName(names.scan_skip, i), width, 0.0f);
}

}  // namespace arn::convert
