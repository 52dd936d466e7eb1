#include "runtime/vision/image_plan.h"

#include "runtime/model/image_place.h"
#include "runtime/vision/patches.h"
#include "runtime/vision/tower_runner.h"

namespace arn {
namespace {

Status ResolveOptions(ImageOptions* options, Diag* diag) {
  if (options->max_side == 0) options->max_side = kDefaultImageSide;
  if (options->max_side > kMostImageSide) {
    return diag->Fail(Status::kBadArgument, "max_side is %u, expected 1 to %u", options->max_side,
                      kMostImageSide);
  }
  return ResolveThreads(&options->n_threads, diag);
}

// Plans the tower on out->backend, with out->fallback.
Status PlanTower(const Model& model, uint64_t object_bytes, ImagePlan* out, Diag* diag) {
  const VisionSpec& vision = model.spec.vision;
  const uint32_t patches = MostPatches(vision, out->options.max_side);
  const uint32_t tokens = patches / vision.merged_patches();
  out->Copy(model.vision);
  out->program.max_encoder_rows = patches;
  out->program.max_pooled_rows = tokens;
  Layout layout;
  ARN_ASSIGN(out->object, layout.Add(Region::kConstants, object_bytes));
  ARN_ASSIGN(out->sequence, layout.Add(Region::kConstants, sizeof(SequenceRows)));
  ARN_ASSIGN(out->taps, layout.AddArray(Region::kConstants,
                                        uint64_t{2} * (vision.position_side + 3), sizeof(double)));
  ARN_ASSIGN(out->rows, layout.AddArray(Region::kIo, uint64_t{patches} * vision.patch_row_floats(),
                                        sizeof(float)));
  bool has_rope = false;
  for (const LayerKindSpec& kind : vision.kinds) has_rope = has_rope || kind.rope != kNoRope;
  if (has_rope) {
    ARN_ASSIGN(out->axis_positions,
               layout.AddArray(Region::kIo, uint64_t{patches} * kRopeAxes, sizeof(uint32_t)));
  }
  if (vision.window_side != 0) {
    // A window has a token at least.
    ARN_ASSIGN(out->windows, layout.AddArray(Region::kIo, tokens, sizeof(SequenceRows)));
  }
  if (IsTowerOnDevice(*out)) {
    ARN_ASSIGN(
        out->results,
        layout.AddArray(Region::kIo, uint64_t{tokens} * VectorFloats(model.spec), sizeof(float)));
  }
  ARN_ASSIGN(out->resizer, layout.Add(Region::kIo, Resizer::Bytes(out->options.max_side,
                                                                  out->bounds.longest_side)));
  ARN_ASSIGN(out->whole, layout.Add(Region::kIo, out->bounds.whole_bytes));
  ARN_ASSIGN(out->grid, layout.Add(Region::kIo, out->bounds.grid_bytes));
  return PlanProgram(out->options.n_threads, &layout, out, diag);
}

}  // namespace

Status PlanImageEncoder(const Model& model, const TowerBackends& backends,
                        const ImageOptions& options, uint64_t object_bytes, ImagePlan* out,
                        Diag* diag) {
  *out = ImagePlan();
  const VisionSpec& vision = model.spec.vision;
  if (!model.has_weights || !vision.exists()) {
    return diag->Fail(Status::kUnsupported,
                      "the model takes no images: its bundle has no vision "
                      "tower");
  }
  out->options = options;
  ARN_TRY(ResolveOptions(&out->options, diag));
  out->bounds = BoundsOf(vision);
  out->self_test = backends.self_test;
  out->backend = backends.backend;
  out->fallback = backends.fallback;
  if (out->backend != nullptr) {
    const Status status = PlanTower(model, object_bytes, out, diag);
    if (status != Status::kUnsupported || out->fallback == nullptr) return status;
    out->refused = *diag;
    diag->Clear();
  } else {
    const Status missing = out->refused.Fail(Status::kUnsupported, "%s", backends.if_missing);
    if (out->fallback == nullptr) {
      *diag = out->refused;
      return missing;
    }
  }
  out->backend = out->fallback;
  out->fallback = nullptr;
  return PlanTower(model, object_bytes, out, diag);
}

}  // namespace arn
