#include "runtime/model/pooled_program.h"

#include "platform/base/arith.h"
#include "runtime/bundle/optional_fields.h"
#include "runtime/model/decoder_program.h"
#include "runtime/model/layer_program.h"
#include "runtime/model/step_list.h"
#include "runtime/model/whole_input_program.h"

namespace arn {
namespace {

constexpr uint64_t kStepsPerLayer = 16;  // dense layers with attention
constexpr uint64_t kStepsOutsideLayers = 5 + kMaxRopeKinds;
constexpr uint64_t kStepsPerDense = 3;

void AddNorm(NormKind kind, WeightId weight, WeightId bias, float epsilon, ValueId x,
             StepList* steps) {
  if (weight == kNoWeight) return;
  NormParams norm;
  norm.kind = kind;
  norm.weight = weight;
  norm.bias = bias;
  norm.epsilon = epsilon;
  steps->Add(Step(norm, x, x));
}

void AddEmbedding(const ModelSpec& spec, ValueId x, StepList* steps) {
  EmbedParams embed;
  embed.weight = spec.embedding;
  embed.factor = spec.embedding_factor;
  steps->Add(Step(embed, kNoValue, x));
  if (spec.positions != kNoWeight || spec.token_types != kNoWeight) {
    AddPositionsParams add;
    add.positions = spec.positions;
    add.token_types = spec.token_types;
    steps->Add(Step(add, x));
  }
  AddNorm(spec.final_norm_kind, spec.embedding_norm, spec.embedding_norm_bias,
          spec.final_norm_epsilon, x, steps);
}

// Adds the pooling of x and what follows it. Returns the last value.
ValueId AddPooling(const PoolingSpec& pooling, uint32_t hidden, ValueId x, StepList* steps,
                   Span<Value> values) {
  const auto new_value = [&](uint32_t width) {
    const ValueId id = steps->NewValue("pooled", width);
    values[id].is_pooled = true;
    return id;
  };
  PoolParams pool;
  pool.mode = pooling.mode;
  ValueId at = new_value(hidden);
  steps->Add(Step(pool, x, at));
  for (const DenseSpec& dense : pooling.dense) {
    const ValueId out = new_value(dense.width);
    LinearParams linear;
    linear.weight = dense.weight;
    steps->Add(Step(linear, at, out));
    if (dense.has_activation) {
      ActParams act;
      act.activation = dense.activation;
      steps->Add(Step(act, out));
    }
    AddNorm(dense.norm_kind, dense.norm, dense.norm_bias, dense.norm_epsilon, out, steps);
    at = out;
  }
  return at;
}

}  // namespace

uint64_t PooledProgramBytes(const fbs::Model& model) {
  if (model.pooling() == nullptr) return 0;
  const uint64_t n_steps = CountOf(model.layers()) * kStepsPerLayer + kStepsOutsideLayers +
                           CountOf(model.pooling()->dense()) * kStepsPerDense;
  return WholeInputProgramBytes(n_steps, CountOf(model.kinds()));
}

Status BuildPooledProgram(const ModelSpec& spec, Arena* arena, Program* out, Diag* diag) {
  const uint64_t max_steps = spec.layers.size() * kStepsPerLayer + kStepsOutsideLayers +
                             spec.pooling.dense.size() * kStepsPerDense;
  ProgramParts parts;
  ARN_TRY(AllocateParts(spec.kinds, max_steps, arena, &parts));
  for (AttentionKind& kind : parts.kinds) {
    kind.group = kNoGroup;
    kind.is_causal = !spec.is_bidirectional;
  }

  StepList builder(parts.steps, parts.values);
  const LayerValues v = NewLayerValues(spec, &builder);
  AddEmbedding(spec, v.x, &builder);
  ValueId angles[kMaxRopeKinds];
  AddRopeAngles(spec.kinds, spec.ropes, false, angles, &builder);
  AddWholeInputLayers(spec.kinds, spec.layers, 0, static_cast<uint32_t>(spec.layers.size()), v,
                      angles, &builder);
  AddNorm(spec.final_norm_kind, spec.final_norm, spec.final_norm_bias, spec.final_norm_epsilon, v.x,
          &builder);
  AddPooling(spec.pooling, spec.hidden, v.x, &builder, parts.values);
  ARN_TRY(FinishProgram(spec, parts, "model.kinds", &builder, out, diag));
  out->max_context = spec.pooling.max_tokens;
  return Status::kOk;
}

}  // namespace arn
