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

void Planner::AddMixer(uint32_t i, const LayerKindSpec& kind, LayerTensors* layer) {
  const TensorNames& names = *spec_.names;
  const uint32_t hidden = spec_.hidden, width = kind.mixer_width;
  const auto matrix = [&](const char* name, std::vector<SourcePart> parts, uint32_t cols) {
    return AddMatrix(OwnName(i, name), formats_.weights, true, std::move(parts), cols);
  };
  const bool is_scan = kind.mixer == Mixer::kScan;
  const SourcePart in =
      Part(LayerName(names.mixer_in, i), (is_scan ? 2 : 3) * width, hidden, kind.has_mixer_in_bias);
  // The checkpoint stores x, then its gate; the bundle stores the gate first.
  layer->mixer_in = matrix(
      "mixer_in", is_scan ? Split(in, {{width, width}, {0, width}}) : std::vector{in}, hidden);
  const std::string conv = LayerName(names.conv, i);
  layer->conv = AddByChannel(OwnName(i, "conv"), WeightName(conv), kind.conv_taps,
                             {width, 1, kind.conv_taps}, false);
  if (kind.has_conv_bias) {
    layer->conv_bias = AddVector(OwnName(i, "conv_bias"), conv + ".bias", width, 0.0f);
  }
  if (!is_scan) return;
  const uint32_t rank = kind.scan_rank, states = kind.scan_states;
  const SourcePart inputs = Part(LayerName(names.scan_inputs, i), rank + 2 * states, width, false);
  layer->scan_low = matrix("scan_low", Split(inputs, {{0, rank}}), width);
  layer->scan_mix = matrix("scan_mix", Split(inputs, {{rank, 2 * states}}), width);
  layer->scan_steps =
      matrix("scan_steps", {Part(LayerName(names.scan_steps, i), width, rank, true)}, rank);
  layer->scan_rates = AddByChannel(OwnName(i, "scan_rates"), LayerName(names.scan_rates, i), states,
                                   {width, states}, spec_.rates_are_logs);
  layer->scan_skip = AddVector(OwnName(i, "scan_skip"), LayerName(names.scan_skip, i), width, 0.0f);
}

}  // namespace arn::convert
