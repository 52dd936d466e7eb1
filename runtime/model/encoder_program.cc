#include "runtime/model/encoder_program.h"

#include "runtime/model/layer_program.h"

namespace arn {
namespace {

constexpr uint64_t kStepsOutsideEncoderLayers = 9 + kMaxRopeKinds;
constexpr uint16_t kTaps = 3;

// Adds a value that only the encoder's steps use.
ValueId NewEncoderValue(const char* name, uint32_t width, uint16_t row_factor, StepList* steps) {
  const ValueId id = steps->NewValue(name, width);
  steps->MarkEncoder(id, row_factor);
  return id;
}

void AddLinear(ValueId in, ValueId out, WeightId weight, uint32_t layer, StepList* steps) {
  LinearParams linear;
  linear.weight = weight;
  steps->Add(Step(linear, in, out, layer));
}

// Adds a convolution of kernel size 3 and its activation: in -> out. The row count is that of
// `out`.
void AddConvolution(ValueId in, ValueId columns, ValueId out, WeightId weight,
                    Activation activation, StepList* steps) {
  Im2colParams im2col;
  im2col.n_taps = kTaps;
  steps->Add(Step(im2col, in, columns));
  AddLinear(columns, out, weight, 0, steps);
  ActParams act;
  act.activation = activation;
  steps->Add(Step(act, out));
}

// Adds the feature front end: two frames become one row of x.
void AddFeatures(const EncoderSpec& encoder, ValueId x, StepList* steps) {
  const uint32_t width = encoder.feature_width, hidden = encoder.hidden;
  const ValueId frames = NewEncoderValue("frames", width, 2, steps);
  const ValueId first = NewEncoderValue("columns", kTaps * width, 2, steps);
  const ValueId convolved = NewEncoderValue("convolved", hidden, 2, steps);
  const ValueId second = NewEncoderValue("columns", kTaps * hidden, 1, steps);
  steps->Add(Step(FeaturesParams(), kNoValue, frames));
  AddConvolution(frames, first, convolved, encoder.conv1, encoder.conv_activation, steps);
  AddConvolution(convolved, second, x, encoder.conv2, encoder.conv_activation, steps);
}

// Adds each decoder layer's cross-attention keys and values, stored one after the other.
void AddCross(const ModelSpec& spec, ValueId encoder, StepList* steps) {
  const KvGroupSpec& shape = spec.groups[spec.encoder.group];
  const ValueId kv = NewEncoderValue("cross_kv", 2 * shape.n_kv_heads * shape.head_dim, 1, steps);
  for (uint32_t i = 0; i < spec.layers.size(); ++i) {
    const LayerSpec& layer = spec.layers[i];
    if (layer.cross_q == kNoWeight) continue;
    AddLinear(encoder, kv, layer.cross_kv, i, steps);
    StoreKvParams store;
    store.kind = static_cast<uint16_t>(spec.kinds.size() + layer.kind);
    store.group_layer = static_cast<uint16_t>(layer.cross_layer);
    steps->Add(Step(store, kv, kNoValue, i));
  }
}

}  // namespace

LayerValues NewEncoderValues(Span<const LayerKindSpec> kinds, Span<const LayerSpec> layers,
                             uint32_t hidden, StepList* steps) {
  const LayerWidths w = WidestOf(kinds, layers);
  LayerValues v;
  v.x = NewEncoderValue("encoder", hidden, 1, steps);
  v.normed = NewEncoderValue("encoder_normed", hidden, 1, steps);
  v.qkv = NewEncoderValue("encoder_qkv", w.qkv, 1, steps);
  v.attention = NewEncoderValue("encoder_attention", w.attention, 1, steps);
  v.ffn_normed = NewEncoderValue("encoder_ffn_normed", hidden, 1, steps);
  if (w.gate_up != 0) v.gate_up = NewEncoderValue("encoder_gate_up", w.gate_up, 1, steps);
  if (w.activated != 0) v.activated = NewEncoderValue("encoder_activated", w.activated, 1, steps);
  return v;
}

uint64_t ProgramKinds(const ModelSpec& spec) {
  return spec.encoder.exists() ? 2 * spec.kinds.size() + spec.encoder.kinds.size()
                               : spec.kinds.size();
}

void FillKinds(const ModelSpec& spec, Span<AttentionKind> out) {
  const size_t n = spec.kinds.size();
  for (size_t i = 0; i < n; ++i) out[i] = AttentionOf(spec.kinds[i]);
  if (!spec.encoder.exists()) return;
  for (size_t i = 0; i < n; ++i) {
    AttentionKind& cross = out[n + i];
    cross = AttentionOf(spec.kinds[i]);
    cross.window = cross.chunk = 0;
    cross.rope = kNoRope;
    cross.query_temperature = 0.0f;
    cross.qkv_clip = 0.0f;
    cross.is_cross_attention = true;
    cross.group = spec.encoder.group;
  }
  for (size_t i = 0; i < spec.encoder.kinds.size(); ++i) {
    out[2 * n + i] = AttentionOf(spec.encoder.kinds[i]);
  }
}

uint64_t EncoderKinds(const fbs::Encoder* encoder) {
  return encoder == nullptr || encoder->kinds() == nullptr ? 0 : encoder->kinds()->size();
}

uint64_t EncoderSteps(const EncoderSpec& encoder, uint64_t n_layers) {
  if (!encoder.exists()) return 0;
  return encoder.layers.size() * kStepsPerEncoderLayer + 2 * n_layers + kStepsOutsideEncoderLayers;
}

uint64_t EncoderSteps(const fbs::Encoder* encoder) {
  if (encoder == nullptr || encoder->layers() == nullptr) return 0;
  return encoder->layers()->size() * kStepsPerEncoderLayer + kStepsOutsideEncoderLayers;
}

void AddEncoder(const ModelSpec& spec, StepList* steps) {
  const EncoderSpec& encoder = spec.encoder;
  const LayerValues v = NewEncoderValues(encoder.kinds, encoder.layers, encoder.hidden, steps);
  if (encoder.feature_width != 0) {
    AddFeatures(encoder, v.x, steps);
  } else {
    EmbedParams embed;
    embed.weight = encoder.embedding;
    embed.factor = encoder.embedding_factor;
    steps->Add(Step(embed, kNoValue, v.x));
  }
  if (encoder.positions != kNoWeight) {
    AddPositionsParams add;
    add.positions = encoder.positions;
    steps->Add(Step(add, v.x));
  }
  ValueId angles[kMaxRopeKinds];
  AddRopeAngles(encoder.kinds, spec.ropes, true, angles, steps);
  const auto first_kind = static_cast<uint32_t>(2 * spec.kinds.size());
  for (uint32_t i = 0; i < encoder.layers.size(); ++i) {
    const LayerSpec& layer = encoder.layers[i];
    const LayerPlace place = {i, first_kind + layer.kind, 0, true};
    const LayerKindSpec& kind = encoder.kinds[layer.kind];
    AddLayer(layer, kind, place, ValuesOf(layer, kind, v, steps), angles, steps);
  }
  NormParams norm;
  norm.weight = encoder.final_norm;
  norm.bias = encoder.final_norm_bias;
  norm.epsilon = encoder.final_norm_epsilon;
  norm.kind = encoder.final_norm_kind;
  steps->Add(Step(norm, v.x, v.normed));
  AddCross(spec, v.normed, steps);
}

}  // namespace arn
