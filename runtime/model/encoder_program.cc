#include "runtime/model/encoder_program.h"

#include "runtime/model/layer_program.h"
#include "runtime/model/read_convolutions.h"

namespace arn {
namespace {

constexpr uint64_t kStepsPerConvolution = 4;
constexpr uint64_t kStepsOutsideEncoderLayers = 3 + kMaxRopeKinds;

// Adds a value that only the encoder's steps use.
ValueId NewEncoderValue(const char* name, uint32_t width, StepList* steps) {
  const ValueId id = steps->NewValue(name, width);
  steps->MarkEncoder(id, 1);
  return id;
}

void AddLinear(ValueId in, ValueId out, WeightId weight, uint32_t layer, StepList* steps) {
  LinearParams linear;
  linear.weight = weight;
  steps->Add(Step(linear, in, out, layer));
}

// Adds a convolution, its activation and its norm: in -> out. stride: frames from a row of `out` to
// the next.
void AddConvolution(const ConvolutionSpec& convolution, ValueId in, ValueId columns, ValueId out,
                    uint16_t stride, StepList* steps) {
  Im2colParams im2col;
  im2col.n_taps = convolution.taps;
  im2col.stride = convolution.stride;
  im2col.padding = convolution.padding;
  steps->Add(Step(im2col, in, columns));
  AddLinear(columns, out, convolution.weight, 0, steps);
  ActParams act;
  act.activation = convolution.activation;
  steps->Add(Step(act, out));
  if (convolution.norm == kNoWeight) return;
  NormRowsParams norm;
  norm.weight = convolution.norm;
  norm.bias = convolution.norm_bias;
  norm.epsilon = convolution.norm_epsilon;
  norm.stride = stride;
  steps->Add(Step(norm, out));
}

// Adds the feature front end: convolutions make rows of x of the frames.
void AddFeatures(const EncoderSpec& encoder, ValueId x, StepList* steps) {
  const size_t n = encoder.convolutions.size();
  FrameRule rules[kMaxConvolutions + 1];  // before the first, behind the first, ..
  for (size_t i = n; i > 0; --i) rules[i - 1] = rules[i].Before(encoder.convolutions[i - 1]);
  const auto value = [&](const char* name, uint32_t width, const FrameRule& rule) {
    const ValueId id = steps->NewValue(name, width);
    steps->MarkEncoder(id, rule.per_row, rule.more);
    return id;
  };
  FeaturesParams features;
  features.optional_rows = encoder.frames.optional;
  ValueId in = value("frames", encoder.feature_width, rules[0]);
  steps->Add(Step(features, kNoValue, in));
  uint32_t channels = encoder.feature_width;
  uint16_t stride = 1;
  for (size_t i = 0; i < n; ++i) {
    const ConvolutionSpec& convolution = encoder.convolutions[i];
    const ValueId columns = value("columns", convolution.taps * channels, rules[i + 1]);
    channels = convolution.channels;
    const ValueId out = i + 1 == n ? x : value("convolved", channels, rules[i + 1]);
    stride = static_cast<uint16_t>(stride * convolution.stride);
    AddConvolution(convolution, in, columns, out, stride, steps);
    in = out;
  }
}

// Adds each decoder layer's cross-attention keys and values, stored one after the other.
void AddCross(const ModelSpec& spec, ValueId encoder, StepList* steps) {
  const KvGroupSpec& shape = spec.groups[spec.encoder.group];
  const ValueId kv = NewEncoderValue("cross_kv", 2 * shape.n_kv_heads * shape.head_dim, steps);
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
  v.x = NewEncoderValue("encoder", hidden, steps);
  v.normed = NewEncoderValue("encoder_normed", hidden, steps);
  v.qkv = NewEncoderValue("encoder_qkv", w.qkv, steps);
  v.attention = NewEncoderValue("encoder_attention", w.attention, steps);
  v.ffn_normed = NewEncoderValue("encoder_ffn_normed", hidden, steps);
  if (w.gate_up != 0) v.gate_up = NewEncoderValue("encoder_gate_up", w.gate_up, steps);
  if (w.activated != 0) v.activated = NewEncoderValue("encoder_activated", w.activated, steps);
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
  return encoder.layers.size() * kStepsPerEncoderLayer + 2 * n_layers +
         encoder.convolutions.size() * kStepsPerConvolution + kStepsOutsideEncoderLayers;
}

uint64_t EncoderSteps(const fbs::Encoder* encoder) {
  if (encoder == nullptr || encoder->layers() == nullptr) return 0;
  return encoder->layers()->size() * kStepsPerEncoderLayer +
         ConvolutionCount(encoder) * kStepsPerConvolution + kStepsOutsideEncoderLayers;
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
    if (i == 0 && HaveSameSteps(encoder.kinds, encoder.layers)) FreezeLayerValues(v, steps);
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
