// Tensors of a vision tower. Its layers are those of a decoder of its own, whose tensors a planner
// of their own takes from the same checkpoint.
#include <cmath>

#include "converter/base/error.h"
#include "converter/family/vision_family.h"
#include "converter/tensors/planner.h"

namespace arn::convert {
namespace {

// A tower is small beside its decoder, and each of its errors is in every token of an image: fewer
// bits are left to the decoder.
Formats TowerFormats(const Formats& formats) {
  Formats tower = formats;
  if (IsInteger(tower.weights)) tower.weights = DType::kInt8;
  return tower;
}

void MoveProjector(uint32_t by, ProjectorTensors* projector) {
  MoveTensor(by, &projector->norm);
  MoveTensor(by, &projector->norm_bias);
  for (uint32_t& index : projector->stages) MoveTensor(by, &index);
}

}  // namespace

uint32_t Planner::AddPatchEmbedding(const VisionSpec& vision) {
  const uint32_t side = vision.patch_size, pixels = side * side, cols = kPixelChannels * pixels;
  SourcePart part;
  const std::string name = WeightName(vision.patch_embedding);
  if (vision.has_channels_last) {
    part.weight = sources_.Take(name, {spec_.hidden, cols});
    part.taps = kPixelChannels;
  } else if (vision.frames > 1) {
    part.weight = sources_.Take(name, {spec_.hidden, kPixelChannels, vision.frames, side, side});
    part.frames = vision.frames;
    part.frame_cols = pixels;
  } else {
    part.weight = sources_.Take(name, {spec_.hidden, kPixelChannels, side, side});
  }
  if (vision.has_patch_bias) {
    part.bias = sources_.Take(vision.patch_embedding + ".bias", {spec_.hidden});
  }
  part.rows = spec_.hidden;
  return AddMatrix("vision.patch_embedding", formats_.weights, true, {part}, cols);
}

std::vector<SourcePart> Planner::PositionParts(const VisionSpec& vision) {
  SourcePart part;
  const uint32_t side = vision.position_side;
  if (vision.grid_positions != GridPositions::kAxes) {
    part.rows = side * side;
    part.weight = sources_.Take(WeightName(vision.positions), {part.rows, spec_.hidden});
    return {part};
  }
  // As many of either axis as an image may have.
  part.rows = side;
  part.weight = sources_.Take(vision.positions, {2, vision.stored_positions, spec_.hidden});
  SourcePart of_rows = part;
  of_rows.first_row = vision.stored_positions;
  return {part, of_rows};
}

// The matrices of q, k and v are one, and so are those of gate and up: the ranges of their inputs
// must be equal.
void Planner::AddClamps(const LayerScope& scope, LayerTensors* layer) {
  const TensorNames& names = *scope.names;
  struct Bounds {
    const char* matrix;
    const char* side;
  };
  const Bounds all[kClampPlaces] = {{names.q, "input"},     {names.attention_out, "input"},
                                    {names.gate, "input"},  {names.down, "input"},
                                    {names.q, "output"},    {names.k, "output"},
                                    {names.v, "output"},    {names.attention_out, "output"},
                                    {names.gate, "output"}, {names.up, "output"},
                                    {names.down, "output"}};
  const uint32_t index = AddConstant(scope.Own("clamps"), 2 * kClampPlaces, 0.0f);
  const auto take = [&](const char* matrix, const std::string& bound) {
    std::string name = scope.Stored(matrix);
    name.replace(name.rfind('.') + 1, std::string::npos, bound);
    SourcePart part;
    part.weight = sources_.Take(name, {});
    part.rows = 1;
    part.is_bound = true;
    return part;
  };
  for (const Bounds& bounds : all) {
    for (const char* end : {"_min", "_max"}) {
      plan_.tensors[index].parts.push_back(take(bounds.matrix, bounds.side + std::string(end)));
    }
  }
  const Bounds shared[] = {{names.k, names.q}, {names.v, names.q}, {names.up, names.gate}};
  for (const Bounds& pair : shared) {
    for (const char* bound : {"input_min", "input_max"}) {
      const Checkpoint::Entry* one = take(pair.matrix, bound).weight;
      const Checkpoint::Entry* other = take(pair.side, bound).weight;
      if (one == nullptr || other == nullptr || SameValues(*one, *other)) continue;
      Fail(
          "%s: tensor %s differs from %s: not supported; --no-images converts the text decoder "
          "alone",
          one->file->path().c_str(), one->tensor->name.c_str(), other->tensor->name.c_str());
    }
  }
  layer->clamps = index;
}

ProjectorTensors Planner::AddProjector(const std::string& scope, const ProjectorSpec& projector,
                                       uint32_t cols) {
  ProjectorTensors out;
  if (!projector.norm.empty() && !projector.has_norm_weights) {
    out.norm = AddConstant(scope + "merged_norm", cols, 1.0f);
  } else if (!projector.norm.empty()) {
    out.norm =
        AddVector(scope + "merged_norm", WeightName(projector.norm), cols, projector.norm_offset);
    if (projector.norm_kind == NormKind::kLayer) {
      out.norm_bias = AddVector(scope + "merged_norm_bias", projector.norm + ".bias", cols, 0.0f);
    }
  }
  for (const DenseSpec& stage : projector.stages) {
    SourcePart part;
    const std::string name = stage.is_whole_name ? stage.weight : WeightName(stage.weight);
    part.weight =
        sources_.Take(name, stage.is_transposed ? std::vector<uint64_t>{cols, stage.width}
                                                : std::vector<uint64_t>{stage.width, cols});
    if (stage.has_bias) part.bias = sources_.Take(stage.weight + ".bias", {stage.width});
    part.rows = stage.width;
    part.transposed_rows = stage.is_transposed ? stage.width : 0;
    const std::string label = scope + "projector." + std::to_string(out.stages.size());
    out.stages.push_back(AddMatrix(label, formats_.weights, true, {part}, cols));
    cols = stage.width;
  }
  return out;
}

VisionTensors Planner::MakeVision(const VisionSpec& vision, std::vector<PlannedTensor>* tensors) {
  VisionTensors out;
  out.patch_embedding = AddPatchEmbedding(vision);
  if (!vision.positions.empty()) {
    out.positions =
        AddMatrix("vision.positions", DType::kF32, false, PositionParts(vision), spec_.hidden);
  }
  for (uint32_t i = 0; i < spec_.layer_kinds.size(); ++i) {
    const LayerKindSpec& kind = spec_.kinds[spec_.layer_kinds[i]];
    const LayerScope scope = {i, spec_.names, "vision."};
    LayerTensors layer;
    AddAttention(scope, kind, &layer);
    AddFeedForward(scope, kind, &layer);
    if (vision.has_clamps) AddClamps(scope, &layer);
    out.layers.push_back(layer);
  }
  if (spec_.names->final_norm != nullptr) {
    AddNorm("vision.final_norm", spec_.names->final_norm, spec_.final_norm_kind, spec_.hidden,
            &out.final_norm, &out.final_norm_bias);
  }
  const bool concats = vision.merge == PoolKind::kConcat;
  const uint32_t merged = (concats ? vision.merge_side * vision.merge_side : 1) * spec_.hidden;
  if (!vision.merge_scale.empty()) {
    out.merge_shift = AddVector("vision.merge_shift", vision.merge_shift, merged, 0.0f);
    out.merge_scale = AddVector("vision.merge_scale", vision.merge_scale, merged, 0.0f);
  }
  out.projector = AddProjector("vision.", vision.projector, merged);
  for (const DeepstackSpec& deep : vision.deepstack) {
    const std::string scope = "vision.deepstack." + std::to_string(out.deepstack.size()) + ".";
    out.deepstack.push_back(AddProjector(scope, deep.projector, merged));
  }
  for (const char* unused : spec_.names->unused) {
    if (unused != nullptr) sources_.LeaveOut(unused);
  }
  sources_.FailMissing("", "");
  sources_.RefuseExtra(kVisionPrefix);
  *tensors = std::move(plan_.tensors);
  return out;
}

void Planner::AddVision() {
  if (!spec_.vision.exists()) return;
  const Formats formats = TowerFormats(formats_);
  std::vector<PlannedTensor> tensors;
  Planner tower(*spec_.vision.tower, checkpoint_, formats, warnings_);
  VisionTensors& vision = plan_.vision;
  vision = tower.MakeVision(spec_.vision, &tensors);
  const auto first = static_cast<uint32_t>(plan_.tensors.size());
  for (uint32_t* index : {&vision.patch_embedding, &vision.positions, &vision.final_norm,
                          &vision.final_norm_bias, &vision.merge_shift, &vision.merge_scale}) {
    MoveTensor(first, index);
  }
  MoveProjector(first, &vision.projector);
  for (ProjectorTensors& deep : vision.deepstack) MoveProjector(first, &deep);
  for (LayerTensors& layer : vision.layers) MoveLayer(first, &layer);
  for (PlannedTensor& tensor : tensors) plan_.tensors.push_back(std::move(tensor));
  sources_.LeaveOut(kVisionPrefix);
}

}  // namespace arn::convert
