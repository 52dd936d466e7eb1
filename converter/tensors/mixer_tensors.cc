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

// Returns how the value heads of linear attention are stored, from `first` on.
HeadTurns Planner::ValueHeadTurns(const LayerKindSpec& kind, uint32_t first,
                                  uint32_t head_dim) const {
  HeadTurns turns;
  if (!kind.is_linear() || !spec_.value_heads_in_turn) return turns;
  turns.first = first;
  turns.head_dim = head_dim;
  turns.groups = kind.linear_key_heads;
  turns.in_group = kind.linear_heads / kind.linear_key_heads;
  return turns;
}

// Adds f32 [rows, channels] stored as [channels, rows]: the kernels vectorise over channels.
uint32_t Planner::AddByChannel(const std::string& name, const std::string& source, uint32_t rows,
                               const std::vector<uint64_t>& shape, bool is_negative_log) {
  SourcePart part;
  part.weight = sources_.Take(source, shape);
  part.rows = part.transposed_rows = rows;
  part.is_negative_log = is_negative_log;
  return AddMatrix(name, DType::kF32, false, {part}, static_cast<uint32_t>(shape[0]));
}

// Adds the convolutions of q, k and v, which are stored apart.
void Planner::AddSplitConvolution(uint32_t i, const LayerKindSpec& kind, LayerTensors* layer) {
  const TensorNames& names = *spec_.names;
  const uint32_t taps = kind.conv_taps, keys = kind.linear_key_heads * kind.linear_key_dim;
  const auto take = [&](const char* name, uint32_t n) {
    return sources_.Take(WeightName(LayerName(name, i)), {n, 1, taps});
  };
  SourcePart part;
  part.weight = take(names.conv_q, keys);
  part.more_columns[0] = take(names.conv_k, keys);
  part.more_columns[1] = take(names.conv_v, kind.mixer_out_width());
  part.rows = part.transposed_rows = taps;
  layer->conv = AddMatrix(OwnName(i, "conv"), DType::kF32, false, {part}, kind.conv_width());
}

void Planner::AddConvolution(uint32_t i, const LayerKindSpec& kind, LayerTensors* layer) {
  if (spec_.names->conv_q != nullptr) return AddSplitConvolution(i, kind, layer);
  const std::string conv = LayerName(spec_.names->conv, i);
  const uint32_t width = kind.conv_width();
  layer->conv = AddByChannel(OwnName(i, "conv"), WeightName(conv), kind.conv_taps,
                             {width, 1, kind.conv_taps}, false);
  if (kind.has_conv_bias) {
    layer->conv_bias = AddVector(OwnName(i, "conv_bias"), conv + ".bias", width, 0.0f);
  }
  const uint32_t keys = kind.linear_key_heads * kind.linear_key_dim;
  if (!kind.is_linear()) return;
  if (spec_.names->mixer_in == nullptr) {
    plan_.tensors[layer->conv].parts[0].column_turns =
        ValueHeadTurns(kind, 2 * keys, kind.linear_value_dim);
    return;
  }
  // Mamba-2 stores [x | B | C], which are v, k and q.
  for (const uint32_t id : {layer->conv, layer->conv_bias}) {
    if (id == kNoTensor) continue;
    uint32_t* blocks = plan_.tensors[id].parts[0].stored_blocks;
    blocks[0] = blocks[1] = keys;
    blocks[2] = kind.mixer_out_width();
  }
}

// Returns the rows of [z | time steps | betas | q | k | v].
std::vector<SourcePart> Planner::LinearAttentionParts(uint32_t i, const LayerKindSpec& kind) {
  const TensorNames& names = *spec_.names;
  const uint32_t hidden = spec_.hidden, width = kind.mixer_out_width(), heads = kind.linear_heads;
  const uint32_t keys = kind.linear_key_heads * kind.linear_key_dim;
  const bool bias = kind.has_mixer_in_bias;
  if (names.mixer_q != nullptr) {
    return {Part(LayerName(names.mixer_z, i), width, hidden, bias),
            Part(LayerName(names.mixer_a, i), heads, hidden, bias),
            Part(LayerName(names.mixer_b, i), heads, hidden, bias),
            Part(LayerName(names.mixer_q, i), keys, hidden, bias),
            Part(LayerName(names.mixer_k, i), keys, hidden, bias),
            Part(LayerName(names.mixer_v, i), width, hidden, bias)};
  }
  // Takes `rows` rows from `first` on of each key head.
  const auto each = [&](SourcePart part, uint32_t first, uint32_t rows) {
    part.block_stride = part.rows / kind.linear_key_heads;
    part.first_row = first;
    part.block_rows = rows;
    part.rows = rows * kind.linear_key_heads;
    return part;
  };
  if (names.mixer_qkv != nullptr) {
    const auto part = [&](const char* name, uint32_t first, uint32_t head_dim) {
      SourcePart whole = Part(LayerName(name, i), first + heads * head_dim, hidden, bias);
      whole.row_turns = ValueHeadTurns(kind, first, head_dim);
      return whole;
    };
    const SourcePart z = part(names.mixer_z, 0, kind.linear_value_dim),
                     qkv = part(names.mixer_qkv, 2 * keys, kind.linear_value_dim);
    if (names.mixer_ba == nullptr) {
      return {z, part(names.mixer_a, 0, 1), part(names.mixer_b, 0, 1), qkv};
    }
    const SourcePart ba = Part(LayerName(names.mixer_ba, i), 2 * heads, hidden, bias);
    const uint32_t shared = heads / kind.linear_key_heads;
    return {z, each(ba, shared, shared), each(ba, 0, shared), qkv};
  }
  if (names.mixer_qkvz != nullptr) {
    const SourcePart qkvz =
        Part(LayerName(names.mixer_qkvz, i), 2 * keys + 2 * width, hidden, bias);
    const SourcePart ba = Part(LayerName(names.mixer_ba, i), 2 * heads, hidden, bias);
    const uint32_t key = kind.linear_key_dim, values = width / kind.linear_key_heads;
    const uint32_t shared = heads / kind.linear_key_heads;
    return {each(qkvz, 2 * key + values, values),
            each(ba, shared, shared),
            each(ba, 0, shared),
            each(qkvz, 0, key),
            each(qkvz, key, key),
            each(qkvz, 2 * key, values)};
  }
  const SourcePart in =
      Part(LayerName(names.mixer_in, i), 2 * width + 2 * keys + heads, hidden, bias);
  std::vector<SourcePart> parts = Split(in, {{0, width},
                                             {2 * width + 2 * keys, heads},
                                             {2 * width + keys, keys},
                                             {2 * width, keys},
                                             {width, width}});
  const MatrixFactors& f = spec_.factors;
  const float factors[] = {f.z, f.time_steps, f.c, f.b, f.x};
  for (size_t part = 0; part < parts.size(); ++part) {
    parts[part].factor = factors[part];
    parts[part].input_factor = f.mixer_in;
  }
  return parts;
}

// Adds the norms of time steps, B and C; ones if they have no weights.
void Planner::AddScanNorms(uint32_t i, const LayerKindSpec& kind, LayerTensors* layer) {
  const TensorNames& names = *spec_.names;
  layer->scan_low_norm = AddConstant(OwnName(i, "scan_low_norm"), kind.scan_rank, 1.0f);
  layer->scan_mix_norm = AddConstant(OwnName(i, "scan_mix_norm"), 2 * kind.scan_states, 1.0f);
  if (names.scan_low_norm == nullptr) return;
  const auto add = [&](uint32_t tensor, const char* name, uint32_t n) {
    SourcePart part;
    part.weight = sources_.Take(WeightName(LayerName(name, i)), {n});
    part.rows = 1;
    plan_.tensors[tensor].offset = 0.0f;
    plan_.tensors[tensor].parts.push_back(part);
  };
  add(layer->scan_low_norm, names.scan_low_norm, kind.scan_rank);
  add(layer->scan_mix_norm, names.scan_b_norm, kind.scan_states);
  add(layer->scan_mix_norm, names.scan_c_norm, kind.scan_states);
}

void Planner::AddLinearAttention(uint32_t i, const LayerKindSpec& kind, LayerTensors* layer) {
  const TensorNames& names = *spec_.names;
  layer->mixer_in = AddMatrix(OwnName(i, "mixer_in"), formats_.weights, true,
                              LinearAttentionParts(i, kind), spec_.hidden);
  AddConvolution(i, kind, layer);
  const auto row = [&](const char* name, bool is_negative_log) {
    SourcePart part;
    part.weight = sources_.Take(LayerName(name, i), {kind.linear_heads});
    part.rows = 1;
    part.is_negative_log = is_negative_log;
    part.column_turns = ValueHeadTurns(kind, 0, 1);
    return part;
  };
  std::vector<SourcePart> heads = {row(names.scan_rates, spec_.rates_are_logs),
                                   row(names.time_step_bias, false)};
  if (!kind.has_delta_rule) heads.push_back(row(names.scan_skip, false));
  layer->linear_heads = AddMatrix(OwnName(i, "linear_heads"), DType::kF32, false, std::move(heads),
                                  kind.linear_heads);
  if (kind.mixer_norm_group == 0) return;
  const bool repeats = kind.norms_before_gate;
  layer->mixer_norm =
      AddVector(OwnName(i, "mixer_norm"), WeightName(LayerName(names.mixer_norm, i)),
                repeats ? kind.mixer_norm_group : kind.mixer_out_width(), 0.0f);
}

void Planner::AddMixer(uint32_t i, const LayerKindSpec& kind, LayerTensors* layer) {
  if (kind.is_linear()) return AddLinearAttention(i, kind, layer);
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
  AddConvolution(i, kind, layer);
  if (!is_scan) return;
  const uint32_t rank = kind.scan_rank, states = kind.scan_states;
  const SourcePart inputs = Part(LayerName(names.scan_inputs, i), rank + 2 * states, width, false);
  layer->scan_low = matrix("scan_low", Split(inputs, {{0, rank}}), width);
  layer->scan_mix = matrix("scan_mix", Split(inputs, {{rank, 2 * states}}), width);
  layer->scan_steps =
      matrix("scan_steps", {Part(LayerName(names.scan_steps, i), width, rank, true)}, rank);
  if (kind.scan_norm_epsilon != 0) AddScanNorms(i, kind, layer);
  layer->scan_rates = AddByChannel(OwnName(i, "scan_rates"), LayerName(names.scan_rates, i), states,
                                   {width, states}, spec_.rates_are_logs);
  layer->scan_skip = AddVector(OwnName(i, "scan_skip"), LayerName(names.scan_skip, i), width, 0.0f);
}

}  // namespace arn::convert
