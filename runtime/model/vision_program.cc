#include "runtime/model/vision_program.h"

#include "platform/base/arith.h"
#include "runtime/bundle/optional_fields.h"
#include "runtime/model/encoder_program.h"
#include "runtime/model/layer_program.h"
#include "runtime/model/step_list.h"
#include "runtime/model/whole_input_program.h"

namespace arn {
namespace {

constexpr uint64_t kStepsOutsideTowerLayers = 4 + kMaxRopeKinds;
constexpr uint64_t kStepsOfMerge = 2;
constexpr uint64_t kStepsPerStage = 2;

// Counts from a spec, or from a bundle that was not read yet.
struct TowerCounts {
  uint64_t n_layers = 0, n_projectors = 0, n_stages = 0;
};

uint64_t MaxVisionSteps(const TowerCounts& counts) {
  return counts.n_layers * kStepsPerEncoderLayer + counts.n_projectors * kStepsOfMerge +
         counts.n_stages * kStepsPerStage + kStepsOutsideTowerLayers;
}

void AddPartOfPatches(uint32_t first, uint32_t stride, ValueId out, StepList* steps) {
  FeaturesParams features;
  features.first = first;
  features.stride = stride;
  steps->Add(Step(features, kNoValue, out));
}

// Adds x = patch_embedding pixels, plus the position if patches have one.
void AddPatches(const VisionSpec& vision, ValueId x, StepList* steps) {
  const ValueId pixels = steps->NewValue("pixels", vision.patch_floats());
  const uint32_t stride = vision.patch_row_floats();
  const bool has_positions = vision.position_side != 0;
  AddPartOfPatches(0, stride, pixels, steps);
  if (has_positions) AddPartOfPatches(vision.patch_floats(), stride, x, steps);
  LinearParams linear;
  linear.weight = vision.patch_embedding;
  linear.accumulate = has_positions;
  steps->Add(Step(linear, pixels, x));
}

// Adds what makes the rows of `result` of x.
void AddProjector(const VisionSpec& vision, const ProjectorSpec& projector, ValueId x,
                  ValueId result, StepList* steps, Span<Value> values) {
  const auto new_value = [&](uint32_t width) {
    const ValueId id = steps->NewValue("image", width);
    values[id].is_pooled = true;
    return id;
  };
  PoolParams merge;
  merge.mode = vision.merge;
  merge.factor = vision.merge_factor;
  merge.shift = vision.merge_shift;
  merge.scale = vision.merge_scale;
  const bool concats = vision.merge == PoolKind::kConcat;
  ValueId at = new_value((concats ? vision.merged_patches() : 1) * vision.hidden);
  steps->Add(Step(merge, x, at));
  if (projector.norm != kNoWeight) {
    NormParams norm;
    norm.kind = projector.norm_kind;
    norm.weight = projector.norm;
    norm.bias = projector.norm_bias;
    norm.epsilon = projector.norm_epsilon;
    steps->Add(Step(norm, at, at));
  }
  for (const DenseSpec& stage : projector.stages) {
    const bool is_last = &stage == projector.stages.end() - 1;
    const ValueId out = is_last ? result : new_value(stage.width);
    LinearParams linear;
    linear.weight = stage.weight;
    steps->Add(Step(linear, at, out));
    if (stage.has_activation) {
      ActParams act;
      act.activation = stage.activation;
      steps->Add(Step(act, out));
    }
    at = out;
  }
}

}  // namespace

uint64_t VisionProgramBytes(const fbs::Model& model) {
  const fbs::Vision* vision = model.vision();
  if (vision == nullptr) return 0;
  TowerCounts counts = {CountOf(vision->layers()), 1 + CountOf(vision->deepstack()),
                        CountOf(vision->projector())};
  for (uint64_t i = 0; i < CountOf(vision->deepstack()); ++i) {
    counts.n_stages += CountOf(vision->deepstack()->Get(static_cast<uint32_t>(i))->projector());
  }
  return WholeInputProgramBytes(MaxVisionSteps(counts), CountOf(vision->kinds()));
}

Status BuildVisionProgram(const ModelSpec& spec, Arena* arena, Program* out, Diag* diag) {
  const VisionSpec& vision = spec.vision;
  TowerCounts counts = {vision.layers.size(), 1 + vision.deepstack.size(),
                        vision.projector.stages.size()};
  for (const DeepstackSpec& deep : vision.deepstack) {
    counts.n_stages += deep.projector.stages.size();
  }
  ProgramParts parts;
  ARN_TRY(AllocateParts(vision.kinds, MaxVisionSteps(counts), arena, &parts));
  StepList builder(parts.steps, parts.values);
  for (uint32_t i = 0; i <= vision.deepstack.size(); ++i) {
    parts.values[builder.NewValue("image", spec.hidden)].is_pooled = true;
  }
  const LayerValues v = NewEncoderValues(vision.kinds, vision.layers, vision.hidden, &builder);
  AddPatches(vision, v.x, &builder);
  ValueId angles[kMaxRopeKinds];
  AddRopeAngles(vision.kinds, spec.ropes, false, angles, &builder);
  uint32_t n_added = 0;
  const auto add_layers = [&](uint32_t end) {
    AddWholeInputLayers(vision.kinds, vision.layers, n_added, end, v, angles, &builder);
    n_added = end;
  };
  for (uint32_t i = 0; i < vision.deepstack.size(); ++i) {
    const DeepstackSpec& deep = vision.deepstack[i];
    add_layers(deep.layer + 1);
    AddProjector(vision, deep.projector, v.x, static_cast<ValueId>(1 + i), &builder, parts.values);
  }
  add_layers(static_cast<uint32_t>(vision.layers.size()));
  ValueId at = v.x;
  if (vision.final_norm != kNoWeight) {
    NormParams norm;
    norm.kind = vision.final_norm_kind;
    norm.weight = vision.final_norm;
    norm.bias = vision.final_norm_bias;
    norm.epsilon = vision.final_norm_epsilon;
    at = v.normed;
    builder.Add(Step(norm, v.x, at));
  }
  AddProjector(vision, vision.projector, at, 0, &builder, parts.values);
  for (uint32_t i = 0; i <= vision.deepstack.size(); ++i) {
    // Layers behind the first, whose values are tracked no more, leave the results as they are.
    parts.values[i].first_step = 0;
    parts.values[i].last_step = builder.n_steps() - 1;
  }
  ARN_TRY(FinishProgram(spec, parts, "model.vision.kinds", &builder, out, diag));
  out->max_context = vision.max_patches;
  out->pool_rows = vision.merged_patches();
  return Status::kOk;
}

}  // namespace arn
