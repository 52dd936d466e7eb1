#include "runtime/model/decoder_program.h"

#include <algorithm>

#include "platform/base/arith.h"
#include "runtime/bundle/optional_fields.h"
#include "runtime/model/encoder_program.h"
#include "runtime/model/image_place.h"
#include "runtime/model/layer_program.h"
#include "runtime/model/mtp.h"
#include "runtime/model/step_list.h"

namespace arn {
namespace {

constexpr uint32_t kStepsPerLayer = 59;
// Embeddings, norms of theirs, projection, rows of another decoder, head, rows for another one.
constexpr uint32_t kStepsOutsideLayers = 17;
// With residual streams: two routers, and the per-layer embeddings of each stream.
constexpr uint32_t kStreamStepsPerLayer = 10 + kMaxStreams;
constexpr uint32_t kStreamStepsOutsideLayers = 4 * kMaxStreams + 1;
constexpr uint64_t kViewsPerKind = 31;  // LayerValues but x and norms; q alone

// Adds the embeddings that each layer reads a part of.
void AddPerLayer(const PerLayerSpec& spec, const LayerValues& v, StepList* steps) {
  EmbedParams embed;
  embed.weight = spec.embedding;
  embed.factor = spec.factor;
  steps->Add(Step(embed, kNoValue, v.per_layer));
  LinearParams projection;
  projection.weight = spec.projection;
  steps->Add(Step(projection, v.embedded(), v.per_layer_projected));
  NormParams norm;
  norm.weight = spec.norm;
  norm.epsilon = spec.norm_epsilon;
  norm.accumulate = true;
  steps->Add(Step(norm, v.per_layer_projected, v.per_layer));
}

// Adds the projection of a stream, with the root mean square of the first one.
void ProjectStream(const StreamsSpec& spec, WeightId matrix, ValueId from, ValueId to,
                   const LayerValues& v, StepList* steps) {
  LinearParams projection;
  projection.weight = matrix;
  steps->Add(Step(projection, from, v.normed));
  MatchRmsParams match;
  match.like = v.streams;
  match.epsilon = spec.epsilon;
  steps->Add(Step(match, v.normed, to));
}

// Makes the streams of the embedding, which is the first.
void SplitIntoStreams(const StreamsSpec& spec, const LayerValues& v, StepList* steps) {
  for (uint32_t i = 1; i < spec.n; ++i) {
    ProjectStream(spec, spec.in + i - 1, v.streams, static_cast<ValueId>(v.streams + i), v, steps);
  }
}

// Makes x of the streams.
void JoinStreams(const StreamsSpec& spec, const LayerValues& v, StepList* steps) {
  for (uint32_t i = 1; i < spec.n; ++i) {
    const auto stream = static_cast<ValueId>(v.streams + i);
    ProjectStream(spec, spec.out + i - 1, stream, stream, v, steps);
  }
  MixStreamsParams mean;
  mean.rule = StreamRule::kMean;
  mean.streams = v.streams;
  mean.n_streams = static_cast<uint16_t>(spec.n);
  steps->Add(Step(mean, v.x));
}

// Replaces x by what the head's dense layer makes of its final norm.
void AddHeadDense(const ModelSpec& spec, const LayerValues& v, StepList* steps) {
  NormParams norm;
  norm.kind = spec.final_norm_kind;
  norm.weight = spec.final_norm;
  norm.bias = spec.final_norm_bias;
  norm.epsilon = spec.final_norm_epsilon;
  steps->Add(Step(norm, v.x, v.normed));
  LinearParams dense;
  dense.weight = spec.head_dense;
  steps->Add(Step(dense, v.normed, v.x));
  ActParams act;
  act.activation = spec.head_activation;
  steps->Add(Step(act, v.x));
}

// Makes x of the embedding in `row` and of a row of another decoder, which comes there.
void AddHiddenInput(const HiddenInputSpec& spec, ValueId row, ValueId x, StepList* steps) {
  LinearParams linear;
  linear.weight = spec.fc_embedding;
  steps->Add(Step(linear, row, x));
  steps->Add(Step(FeaturesParams(), kNoValue, row));
  if (spec.norm != kNoWeight) {
    NormParams norm;
    norm.weight = spec.norm;
    norm.epsilon = spec.norm_epsilon;
    steps->Add(Step(norm, row, row));
  }
  linear.weight = spec.fc_hidden;
  linear.accumulate = true;
  steps->Add(Step(linear, row, x));
}

// Adds the choice of clusters by a final norm, and puts it into the head.
void ChooseClusters(const ClustersSpec& spec, ValueId final, StepList* steps, LogitsParams* head) {
  const ValueId scores = steps->NewValue("cluster_scores", spec.n);
  head->chosen = steps->NewValue("clusters", 2 * spec.n_used);
  head->n_parts = static_cast<uint16_t>(spec.n);
  LinearParams linear;
  linear.weight = spec.weight;
  steps->Add(Step(linear, final, scores));
  RouteParams route;
  route.n_experts = head->n_parts;
  route.n_chosen = static_cast<uint16_t>(spec.n_used);
  steps->Add(Step(route, scores, head->chosen));
}

// Returns the room for steps of a decoder.
uint64_t MaxSteps(uint64_t n_layers, bool has_streams) {
  const uint64_t streams =
      kHasStreams && has_streams ? n_layers * kStreamStepsPerLayer + kStreamStepsOutsideLayers : 0;
  return n_layers * kStepsPerLayer + kStepsOutsideLayers + streams;
}

// Returns the room for values of a model with this many layer types.
uint64_t MaxValues(uint64_t n_kinds) {
  const uint64_t views = n_kinds < 2 ? 0 : (n_kinds - 1) * kViewsPerKind;
  return Min<uint64_t>(kMaxWholeValues + kViewsPerKind + views, kMaxValues);
}

}  // namespace

uint64_t DecoderProgramBytes(const fbs::Model& model) {
  const uint64_t n_layers = CountOf(model.layers()), n_kinds = CountOf(model.kinds());
  return (MaxSteps(n_layers, model.n_streams() != 0) + kMaxRopeKinds) * sizeof(Step) +
         (EncoderSteps(model.encoder()) + 2 * n_layers) * sizeof(Step) +
         MaxValues(n_kinds + EncoderKinds(model.encoder())) * sizeof(Value) +
         (2 * n_kinds + EncoderKinds(model.encoder())) * sizeof(AttentionKind) + 3 * kSliceAlign;
}

uint64_t DecoderProgramBytes(uint64_t n_layers, uint64_t n_kinds) {
  return (MaxSteps(n_layers, false) + kMaxRopeKinds + 2 * n_layers) * sizeof(Step) +
         MaxValues(n_kinds) * sizeof(Value) + 2 * n_kinds * sizeof(AttentionKind) + 3 * kSliceAlign;
}

Status BuildDecoderProgram(const ModelSpec& spec, Arena* arena, Program* out, Program* with_rows,
                           Diag* diag) {
  *out = Program();
  const uint64_t n_layers = spec.layers.size();
  const uint64_t max_steps = MaxSteps(n_layers, spec.streams.n != 0) + spec.ropes.size() +
                             EncoderSteps(spec.encoder, n_layers);
  ARN_ASSIGN(Span<Step> steps, arena->AllocateArray<Step>(max_steps));
  const uint64_t max_values = MaxValues(spec.kinds.size() + spec.encoder.kinds.size());
  ARN_ASSIGN(Span<Value> values, arena->AllocateArray<Value>(max_values));
  ARN_ASSIGN(Span<AttentionKind> kinds, arena->AllocateArray<AttentionKind>(ProgramKinds(spec)));
  FillKinds(spec, kinds);

  StepList builder(steps, values);
  if (spec.encoder.exists()) AddEncoder(spec, &builder);
  out->n_encoder_steps = builder.n_steps();
  const LayerValues v = NewLayerValues(spec, &builder);

  EmbedParams embed;
  embed.weight = spec.embedding;
  embed.factor = spec.embedding_factor;
  embed.positions = spec.positions;
  const bool joins_rows = kHasMtp && spec.hidden_input.exists();
  const bool has_own_row = kHasMtp && spec.hidden_input.out != kNoWeight;
  const ValueId row = has_own_row ? builder.NewValue("row", spec.hidden_input.width) : v.normed;
  embed.embedding_stride = has_own_row ? spec.hidden_input.width : VectorFloats(spec);
  const ValueId embedded = joins_rows ? row : v.embedded();
  builder.Add(Step(embed, kNoValue, embedded));
  if (spec.per_layer.width != 0) AddPerLayer(spec.per_layer, v, &builder);
  if (spec.embedding_norm != kNoWeight) {
    NormParams norm;
    norm.kind = spec.final_norm_kind;
    norm.weight = spec.embedding_norm;
    norm.bias = spec.embedding_norm_bias;
    norm.epsilon = spec.final_norm_epsilon;
    builder.Add(Step(norm, embedded, embedded));
  }
  if (joins_rows) AddHiddenInput(spec.hidden_input, row, v.x, &builder);
  if (v.has_streams()) SplitIntoStreams(spec.streams, v, &builder);
  ValueId angles[kMaxRopeKinds];
  AddRopeAngles(spec.kinds, spec.ropes, false, angles, &builder);
  const bool is_uniform = HaveSameSteps(spec.kinds, spec.layers);
  for (uint32_t i = 0; i < n_layers; ++i) {
    const LayerSpec& layer = spec.layers[i];
    const auto n_kinds = static_cast<uint32_t>(spec.kinds.size());
    const LayerPlace place = {i, layer.kind, n_kinds + layer.kind, false};
    const LayerKindSpec& kind = spec.kinds[layer.kind];
    AddLayer(layer, kind, place, ValuesOf(layer, kind, v, &builder), angles, &builder);
    if (i < spec.vision.deepstack.size()) {
      AddEmbeddingsParams add;
      add.first = (i + 1) * spec.hidden;
      add.stride = embed.embedding_stride;
      builder.Add(Step(add, v.x, kNoValue, i));
    }
    if (i == 0 && is_uniform) {
      for (ValueId id = v.x; id < builder.n_values(); ++id) {
        const bool crosses_layers =
            id == v.x || id == v.per_layer || v.IsStream(id) || (has_own_row && id == row) ||
            std::find(angles, angles + spec.ropes.size(), id) != angles + spec.ropes.size();
        if (!crosses_layers) builder.FreezeLifetimes(id);
      }
    }
  }
  // v.normed may be frozen: only x and the streams are used together with it, and they lived beside
  // it in the first layer.
  if (v.has_streams()) JoinStreams(spec.streams, v, &builder);
  if (spec.head_dense != kNoWeight) AddHeadDense(spec, v, &builder);
  LogitsParams logits;
  logits.norm_kind = spec.final_norm_kind;
  const bool has_dense = spec.head_dense != kNoWeight;
  logits.norm = has_dense ? spec.head_norm : spec.final_norm;
  logits.bias = has_dense ? spec.head_norm_bias : spec.final_norm_bias;
  logits.factor = spec.logits_factor;
  logits.softcap = spec.logits_softcap;
  logits.epsilon = spec.final_norm_epsilon;
  logits.weight = spec.head;
  // v.normed may be frozen, which only x lives beside.
  const ValueId final = has_own_row ? builder.NewValue("final", spec.hidden) : v.normed;
  NormParams norm;
  norm.kind = spec.final_norm_kind;
  norm.weight = spec.final_norm;
  norm.bias = spec.final_norm_bias;
  norm.epsilon = spec.final_norm_epsilon;
  const Step final_norm(norm, v.x, final, static_cast<uint32_t>(n_layers));
  if (has_own_row) builder.Add(final_norm);
  if (kHasMtp && spec.clusters.n != 0) ChooseClusters(spec.clusters, final, &builder, &logits);
  builder.Add(Step(logits, v.x, kNoValue, static_cast<uint32_t>(n_layers)));
  const uint32_t n_steps = builder.n_steps();
  if (kHasMtp && with_rows != nullptr && has_own_row) {
    LinearParams linear;
    linear.weight = spec.hidden_input.out;
    builder.Add(Step(linear, final, row));
  } else if (kHasMtp && with_rows != nullptr && !spec.final_rows_before_norm) {
    builder.Add(final_norm);
  }
  // The first layer need not use every RoPE type; keep all tables alive to the end.
  for (uint32_t i = 0; i < spec.ropes.size(); ++i) {
    if (angles[i] != kNoValue) values[angles[i]].last_step = builder.n_steps() - 1;
  }
  builder.FinishViews();
  if (builder.is_full()) {
    return diag->Fail(Status::kUnsupported,
                      "model.kinds: more than %llu intermediate values of different widths",
                      static_cast<unsigned long long>(max_values));
  }

  out->steps = steps.subspan(0, n_steps);
  out->values = values.subspan(0, builder.n_values());
  out->weights = spec.weights;
  out->file = spec.file;
  out->kinds = kinds;
  out->ropes = spec.ropes;
  out->vocab = spec.vocab;
  out->max_context = spec.max_context;
  if (!kHasMtp || with_rows == nullptr) return Status::kOk;
  *with_rows = *out;
  with_rows->steps = steps.subspan(0, builder.n_steps());
  with_rows->final_rows = has_own_row ? row : spec.final_rows_before_norm ? v.x : v.normed;
  return Status::kOk;
}

}  // namespace arn
