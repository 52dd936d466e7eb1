#include "runtime/vision/image_plan.h"

#include "runtime/vision/patches.h"

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

}  // namespace

Status PlanImageEncoder(const Model& model, const Backend* backend, const ImageOptions& options,
                        uint64_t object_bytes, ImagePlan* out, Diag* diag) {
  *out = ImagePlan();
  const VisionSpec& vision = model.spec.vision;
  if (!model.has_weights || !vision.exists()) {
    return diag->Fail(Status::kUnsupported,
                      "the model takes no images: its bundle has no vision "
                      "tower");
  }
  ARN_TRY(CheckRunsOnHost(backend, "image encoders", diag));
  out->options = options;
  out->backend = backend;
  ARN_TRY(ResolveOptions(&out->options, diag));
  out->bounds = BoundsOf(vision);
  out->Copy(model.vision);
  out->program.max_encoder_rows = vision.max_patches;
  out->program.max_pooled_rows = vision.max_patches / vision.merged_patches();
  Layout layout;
  ARN_ASSIGN(out->object, layout.Add(Region::kConstants, object_bytes));
  ARN_ASSIGN(out->sequence, layout.Add(Region::kConstants, sizeof(SequenceRows)));
  ARN_ASSIGN(out->taps, layout.AddArray(Region::kConstants,
                                        uint64_t{2} * (vision.position_side + 3), sizeof(double)));
  ARN_ASSIGN(out->rows,
             layout.AddArray(Region::kIo, uint64_t{vision.max_patches} * vision.patch_row_floats(),
                             sizeof(float)));
  bool has_rope = false;
  for (const LayerKindSpec& kind : vision.kinds) has_rope = has_rope || kind.rope != kNoRope;
  if (has_rope) {
    ARN_ASSIGN(
        out->axis_positions,
        layout.AddArray(Region::kIo, uint64_t{vision.max_patches} * kRopeAxes, sizeof(uint32_t)));
  }
  if (vision.window_side != 0) {
    // A window has a token at least.
    const uint32_t tokens = vision.max_patches / vision.merged_patches();
    ARN_ASSIGN(out->windows, layout.AddArray(Region::kIo, tokens, sizeof(SequenceRows)));
  }
  ARN_ASSIGN(out->resizer, layout.Add(Region::kIo, Resizer::Bytes(out->options.max_side,
                                                                  out->bounds.longest_side)));
  ARN_ASSIGN(out->whole, layout.Add(Region::kIo, out->bounds.whole_bytes));
  ARN_ASSIGN(out->grid, layout.Add(Region::kIo, out->bounds.grid_bytes));
  return PlanProgram(out->options.n_threads, &layout, out, diag);
}

}  // namespace arn
