#include "runtime/model/vision_program.h"

#include "platform/base/arith.h"
#include "runtime/bundle/optional_fields.h"
#include "runtime/model/encoder_program.h"
#include "runtime/model/layer_program.h"
#include "runtime/model/step_list.h"
#include "runtime/model/whole_input_program.h"

namespace arn {
namespace {

constexpr uint64_t kStepsOutsideTowerLayers = 6 + kMaxRopeKinds;
constexpr uint64_t kStepsPerStage = 2;

uint64_t MaxVisionSteps(uint64_t n_layers, uint64_t n_stages) {
  return n_layers * kStepsPerEncoderLayer + n_stages * kStepsPerStage + kStepsOutsideTowerLayers;
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

// Adds what makes rows of the decoder's width of x.
void AddProjector(const VisionSpec& vision, ValueId x, StepList* steps, Span<Value> values) {
  const auto new_value = [&](uint32_t width) {
    const ValueId id = steps->NewValue("image", width);
    values[id].is_pooled = true;
    return id;
  };
  PoolParams merge;
  merge.mode = vision.merge;
  const bool concats = vision.merge == PoolKind::kConcat;
  ValueId at = new_value((concats ? vision.merged_patches() : 1) * vision.hidden);
  steps->Add(Step(merge, x, at));
  if (vision.merged_norm != kNoWeight) {
    NormParams norm;
    norm.kind = vision.merged_norm_kind;
    norm.weight = vision.merged_norm;
    norm.bias = vision.merged_norm_bias;
    norm.epsilon = vision.merged_norm_epsilon;
    steps->Add(Step(norm, at, at));
  }
  for (const DenseSpec& stage : vision.projector) {
    const ValueId out = new_value(stage.width);
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
  if (model.vision() == nullptr) return 0;
  const uint64_t n_steps =
      MaxVisionSteps(CountOf(model.vision()->layers()), CountOf(model.vision()->projector()));
  return WholeInputProgramBytes(n_steps, CountOf(model.vision()->kinds()));
}

Status BuildVisionProgram(const ModelSpec& spec, Arena* arena, Program* out, Diag* diag) {
  const VisionSpec& vision = spec.vision;
  const uint64_t max_steps = MaxVisionSteps(vision.layers.size(), vision.projector.size());
  ProgramParts parts;
  ARN_TRY(AllocateParts(vision.kinds, max_steps, arena, &parts));
  StepList builder(parts.steps, parts.values);
  const LayerValues v = NewEncoderValues(vision.kinds, vision.layers, vision.hidden, &builder);
  AddPatches(vision, v.x, &builder);
  ValueId angles[kMaxRopeKinds];
  AddRopeAngles(vision.kinds, spec.ropes, false, angles, &builder);
  AddWholeInputLayers(vision.kinds, vision.layers, v, angles, &builder);
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
  AddProjector(vision, at, &builder, parts.values);
  ARN_TRY(FinishProgram(spec, parts, "model.vision.kinds", &builder, out, diag));
  out->max_context = vision.max_patches;
  out->pool_rows = vision.merged_patches();
  return Status::kOk;
}

}  // namespace arn
