#include "runtime/model/read_vision.h"

#include <cmath>

#include "kernels/pack/pack.h"
#include "platform/base/arith.h"
#include "runtime/bundle/optional_fields.h"
#include "runtime/model/field_checks.h"
#include "runtime/model/read_dense.h"
#include "runtime/model/read_encoder.h"
#include "runtime/model/read_enums.h"
#include "runtime/model/read_layer.h"
#include "runtime/model/read_tensor.h"

namespace arn {
namespace {

constexpr uint32_t kMaxProjector = 16;
constexpr uint32_t kMaxDeepstack = 16;

// A kind without attention may have any rope.
bool Rotates(const LayerKindSpec& kind) { return kind.n_heads != 0 && kind.rope != kNoRope; }

Status UnknownValue(const char* field, uint32_t value, Diag* diag) {
  return diag->Fail(Status::kUnsupported, "model.vision.%s %u is not known to this version", field,
                    value);
}

Status ReadPixels(const fbs::Vision& vision, ImageRules* out, Diag* diag) {
  if (CountOf(vision.mean()) != kPixelChannels || CountOf(vision.std()) != kPixelChannels) {
    return diag->Fail(Status::kBadBundle, "model.vision.mean and std have %u and %u values of %u",
                      static_cast<unsigned>(CountOf(vision.mean())),
                      static_cast<unsigned>(CountOf(vision.std())), kPixelChannels);
  }
  ARN_TRY(CheckFloatRange("vision.scale", vision.scale(), 1e-6f, 1.0f, diag));
  for (uint32_t c = 0; c < kPixelChannels; ++c) {
    ARN_TRY(CheckFinite("vision.mean", vision.mean()->Get(c), diag));
    ARN_TRY(CheckFloatRange("vision.std", vision.std()->Get(c), 1e-6f, 1e6f, diag));
    out->mean[c] = vision.mean()->Get(c);
    out->std[c] = vision.std()->Get(c);
  }
  out->scale = vision.scale();
  if (vision.resample() == fbs::Resample::Nearest || vision.resample() > fbs::Resample::Bicubic) {
    return UnknownValue("resample", static_cast<uint32_t>(vision.resample()), diag);
  }
  out->resample = static_cast<Resample>(vision.resample());
  return Status::kOk;
}

// An image is one tile of any shape.
Status ReadPixelBudget(const fbs::Vision& vision, const VisionSpec& spec, ImageRules* out,
                       Diag* diag) {
  const uint32_t token_pixels = spec.token_size() * spec.token_size();
  ARN_TRY(CheckRange("vision.max_pixels", vision.max_pixels(), token_pixels,
                     uint64_t{kMaxPatches} * spec.patch_size * spec.patch_size, diag));
  ARN_TRY(CheckRange("vision.min_pixels", vision.min_pixels(), 1, vision.max_pixels(), diag));
  out->min_pixels = vision.min_pixels();
  out->max_pixels = vision.max_pixels();
  return Status::kOk;
}

// Checks that every tile is a whole number of tokens, and that tiles and tokens are bounded.
Status ReadRules(const fbs::Vision& vision, const VisionSpec& spec, ImageRules* out, Diag* diag) {
  if (vision.rule() > fbs::ImageRule::PatchBudget) {
    return UnknownValue("rule", static_cast<uint32_t>(vision.rule()), diag);
  }
  out->rule = static_cast<ImageRule>(vision.rule());
  out->splits = vision.splits();
  out->has_whole = vision.has_whole();
  const uint32_t token = spec.token_size();
  if (out->rule == ImageRule::kPixelBudget) return ReadPixelBudget(vision, spec, out, diag);
  if (out->rule == ImageRule::kPatchBudget) {
    out->max_tokens = vision.max_tokens();
    return CheckRange("vision.max_tokens", vision.max_tokens(), 1,
                      spec.max_patches / spec.merged_patches(), diag);
  }
  const bool has_tiles = out->rule != ImageRule::kTokenBudget || out->splits;
  ARN_TRY(CheckRange("vision.tile_size", vision.tile_size(), has_tiles ? token : 0, kMaxTileSize,
                     diag));
  if (vision.tile_size() % token != 0) {
    return diag->Fail(Status::kBadBundle, "model.vision.tile_size is %u, expected a multiple of %u",
                      vision.tile_size(), token);
  }
  out->tile_size = vision.tile_size();
  if (out->rule == ImageRule::kSquare) return Status::kOk;
  if (out->rule == ImageRule::kLongestEdge) {
    // The grid has at most kMaxImageTiles tiles.
    ARN_TRY(CheckRange("vision.longest_edge", vision.longest_edge(), 1,
                       uint64_t{12} * out->tile_size, diag));
    out->longest_edge = vision.longest_edge();
    return Status::kOk;
  }
  ARN_TRY(CheckRange("vision.max_tokens", vision.max_tokens(), 1, kMaxPatches, diag));
  ARN_TRY(CheckRange("vision.min_tokens", vision.min_tokens(), 1, vision.max_tokens(), diag));
  out->min_tokens = vision.min_tokens();
  out->max_tokens = vision.max_tokens();
  if (!out->splits) return Status::kOk;
  ARN_TRY(CheckRange("vision.max_tiles", vision.max_tiles(), 1, kMaxImageTiles, diag));
  ARN_TRY(CheckRange("vision.min_tiles", vision.min_tiles(), 2, vision.max_tiles(), diag));
  ARN_TRY(CheckFloatRange("vision.tolerance", vision.tolerance(), 0.0f, 1e6f, diag));
  out->min_tiles = vision.min_tiles();
  out->max_tiles = vision.max_tiles();
  out->tolerance = vision.tolerance();
  return Status::kOk;
}

Status ReadPatches(const fbs::Vision& vision, const ModelSpec& model, VisionSpec* out, Diag* diag) {
  ARN_TRY(CheckRange("vision.hidden", vision.hidden(), 1, kMaxWidth, diag));
  ARN_TRY(CheckRange("vision.patch_size", vision.patch_size(), 1, 128, diag));
  ARN_TRY(CheckRange("vision.merge_side", vision.merge_side(), 1, 16, diag));
  const bool has_axes = vision.grid_positions() == fbs::GridPositions::Axes;
  ARN_TRY(CheckRange("vision.position_side", vision.position_side(), 0,
                     has_axes ? kMaxPatches : 256, diag));
  ARN_TRY(CheckRange("vision.max_patches", vision.max_patches(), 1, kMaxPatches, diag));
  out->patch_size = vision.patch_size();
  out->merge_side = vision.merge_side();
  out->position_side = vision.position_side();
  out->max_patches = vision.max_patches();
  if (out->max_patches % out->merged_patches() != 0) {
    return diag->Fail(Status::kBadBundle,
                      "model.vision.max_patches is %u, expected a multiple of %u", out->max_patches,
                      out->merged_patches());
  }
  if (vision.grid_positions() > fbs::GridPositions::Axes) {
    return UnknownValue("grid_positions", static_cast<uint32_t>(vision.grid_positions()), diag);
  }
  out->grid_positions = static_cast<GridPositions>(vision.grid_positions());
  Shapes shapes(model.weights, diag);
  ARN_TRY(shapes.Matrix("vision patch_embedding", 0, vision.patch_embedding(), vision.hidden(),
                        out->patch_floats(), &out->patch_embedding));
  if (out->position_side == 0) return Status::kOk;
  const uint64_t side = out->position_side;
  ARN_TRY(shapes.Matrix("vision positions", 0, vision.positions(),
                        has_axes ? 2 * side : side * side, vision.hidden(), &out->positions));
  const Weight& w = model.weights[out->positions];
  if (w.dtype == DType::kF32 && w.layout.order == WeightOrder::kRows) return Status::kOk;
  return diag->Fail(Status::kBadBundle,
                    "model.vision.positions: tensor %u is %s, expected f32 rows", out->positions,
                    DTypeName(w.dtype));
}

// Reads what makes rows of the decoder's width of `width` columns. Table: fbs::Vision or
// fbs::Deepstack.
template <typename Table>
Status ReadProjector(const Table& table, uint32_t width, Arena* arena, const ModelSpec& model,
                     ProjectorSpec* out, Diag* diag) {
  ARN_TRY(ReadNormKind("vision.merged_norm_kind", table.merged_norm_kind(), &out->norm_kind, diag));
  ARN_TRY(CheckEpsilon("vision.merged_norm_epsilon", table.merged_norm_epsilon(), diag));
  out->norm_epsilon = table.merged_norm_epsilon();
  Shapes shapes(model.weights, diag);
  ARN_TRY(ReadNorm("vision merged_norm", 0, table.merged_norm(), table.merged_norm_bias(),
                   out->norm_kind, width, &shapes, &out->norm, &out->norm_bias));
  ARN_TRY(CheckRange("vision.projector", CountOf(table.projector()), 1, kMaxProjector, diag));
  ARN_ASSIGN(Span<DenseSpec> stages, arena->AllocateArray<DenseSpec>(table.projector()->size()));
  for (uint32_t i = 0; i < stages.size(); ++i) {
    ARN_TRY(ReadDense(*table.projector()->Get(i), i, width, model, &stages[i], diag));
    width = stages[i].width;
  }
  out->stages = stages;
  if (width == model.hidden) return Status::kOk;
  return diag->Fail(Status::kBadBundle, "model.vision.projector: rows of %u columns, expected %u",
                    width, model.hidden);
}

// Reads the projectors of the tower's layers, the last and those of `deepstack`.
Status ReadProjectors(const fbs::Vision& vision, Arena* arena, const ModelSpec& model,
                      VisionSpec* out, Diag* diag) {
  if (vision.merge() != fbs::PoolKind::Concat && vision.merge() != fbs::PoolKind::Mean) {
    return UnknownValue("merge", static_cast<uint32_t>(vision.merge()), diag);
  }
  out->merge = static_cast<PoolKind>(vision.merge());
  const bool concats = out->merge == PoolKind::kConcat;
  const uint64_t merged = uint64_t{concats ? out->merged_patches() : 1} * out->hidden;
  ARN_TRY(CheckRange("vision.merge_side", merged, 1, kMaxWidth, diag));
  const auto width = static_cast<uint32_t>(merged);
  ARN_TRY(CheckFinite("vision.merge_factor", vision.merge_factor(), diag));
  out->merge_factor = vision.merge_factor();
  Shapes shapes(model.weights, diag);
  if (vision.merge_shift() != kNoIndex) {
    ARN_TRY(shapes.Vector("vision merge_shift", 0, vision.merge_shift(), width, &out->merge_shift));
  }
  if (vision.merge_scale() != kNoIndex) {
    ARN_TRY(shapes.Vector("vision merge_scale", 0, vision.merge_scale(), width, &out->merge_scale));
  }
  ARN_TRY(ReadProjector(vision, width, arena, model, &out->projector, diag));
  const uint64_t n_deep = CountOf(vision.deepstack());
  ARN_TRY(CheckRange("vision.deepstack", n_deep, 0,
                     Min<uint64_t>(model.layers.size(), kMaxDeepstack), diag));
  ARN_ASSIGN(Span<DeepstackSpec> deepstack, arena->AllocateArray<DeepstackSpec>(n_deep));
  uint32_t least = 0;
  for (uint32_t i = 0; i < n_deep; ++i) {
    const fbs::Deepstack& from = *vision.deepstack()->Get(i);
    ARN_TRY(CheckRange("vision.deepstack.layer", from.layer(), least,
                       static_cast<uint64_t>(out->layers.size()) - 1, diag));
    least = from.layer() + 1;
    deepstack[i].layer = from.layer();
    ARN_TRY(ReadProjector(from, width, arena, model, &deepstack[i].projector, diag));
  }
  out->deepstack = deepstack;
  return Status::kOk;
}

// A patch has the position of its column and that of its row.
Status CheckAxes(const VisionSpec& vision, Diag* diag) {
  if (vision.grid_positions != GridPositions::kAxes) return Status::kOk;
  const uint64_t side = uint64_t{vision.image.max_tokens} * vision.merge_side;
  if (vision.image.rule == ImageRule::kPatchBudget && vision.position_side >= side) {
    return Status::kOk;
  }
  return diag->Fail(Status::kBadBundle,
                    "model.vision.position_side is %u, and images have up to %" PRIu64
                    " patches a side",
                    vision.position_side, side);
}

// Tokens of an image see all of it in both directions, also in layers with a window: the window
// must reach as far.
Status CheckWindows(const ModelSpec& model, const VisionSpec& vision, Diag* diag) {
  if (!vision.sees_both_ways) return Status::kOk;
  const uint32_t tokens = vision.max_patches / vision.merged_patches();
  for (const LayerKindSpec& kind : model.kinds) {
    if (kind.window == 0 || kind.window >= tokens) continue;
    return diag->Fail(Status::kUnsupported,
                      "model.vision: images of %u tokens see themselves in both directions, beyond "
                      "a window of %u",
                      tokens, kind.window);
  }
  return Status::kOk;
}

Status CheckMrope(const ModelSpec& model, const VisionSpec& vision, Diag* diag) {
  bool has_axes = false;
  for (const LayerKindSpec& kind : model.kinds) {
    has_axes = has_axes || (Rotates(kind) && !model.ropes[kind.rope].axes.empty());
  }
  if (has_axes == vision.has_mrope) return Status::kOk;
  return diag->Fail(Status::kBadBundle, "model.vision.has_mrope is %s, and the decoder has %s",
                    vision.has_mrope ? "true" : "false",
                    has_axes ? "a rope with axes" : "no rope with axes");
}

}  // namespace

uint64_t VisionSpecBytes(const fbs::Vision* vision) {
  if (vision == nullptr) return 0;
  const uint64_t n_deep = CountOf(vision->deepstack());
  uint64_t n_stages = CountOf(vision->projector());
  for (uint32_t i = 0; i < n_deep; ++i)
    n_stages += CountOf(vision->deepstack()->Get(i)->projector());
  return BidirectionalLayersBytes(CountOf(vision->kinds()), CountOf(vision->layers())) +
         n_deep * sizeof(DeepstackSpec) + n_stages * sizeof(DenseSpec) + (2 + n_deep) * kSliceAlign;
}

Status ReadVision(const fbs::Vision& vision, Arena* arena, ModelSpec* spec, Diag* diag) {
  VisionSpec out;
  ARN_TRY(ReadPatches(vision, *spec, &out, diag));
  out.hidden = vision.hidden();
  ARN_TRY(ReadPixels(vision, &out.image, diag));
  ARN_TRY(ReadRules(vision, out, &out.image, diag));
  const BidirectionalLayers layers = {"vision", vision.kinds(), vision.layers(), out.hidden};
  ARN_TRY(ReadBidirectionalLayers(layers, arena, *spec, &out.kinds, &out.layers, diag));
  for (const LayerKindSpec& kind : out.kinds) {
    const bool fits = !Rotates(kind) || !spec->ropes[kind.rope].axes.empty();
    if (fits && kind.window == 0) continue;
    return diag->Fail(Status::kUnsupported,
                      "model.vision.kinds: windows of rows, and rope without axes, are not "
                      "supported");
  }
  ARN_TRY(CheckRange("vision.window_side", vision.window_side(), 0, kMaxPatches, diag));
  out.window_side = vision.window_side();
  ARN_TRY(
      ReadNormKind("vision.final_norm_kind", vision.final_norm_kind(), &out.final_norm_kind, diag));
  ARN_TRY(CheckEpsilon("vision.final_norm_epsilon", vision.final_norm_epsilon(), diag));
  out.final_norm_epsilon = vision.final_norm_epsilon();
  Shapes shapes(spec->weights, diag);
  ARN_TRY(ReadNorm("vision final_norm", 0, vision.final_norm(), vision.final_norm_bias(),
                   out.final_norm_kind, out.hidden, &shapes, &out.final_norm,
                   &out.final_norm_bias));
  ARN_TRY(ReadProjectors(vision, arena, *spec, &out, diag));
  ARN_TRY(CheckRange("vision.token_id", vision.token_id(), 0, spec->vocab - 1, diag));
  out.token_id = static_cast<int32_t>(vision.token_id());
  out.sees_both_ways = vision.sees_both_ways();
  ARN_TRY(CheckAxes(out, diag));
  ARN_TRY(CheckWindows(*spec, out, diag));
  out.has_mrope = vision.has_mrope();
  ARN_TRY(CheckMrope(*spec, out, diag));
  const fbs::ImageText* text = vision.text();
  if (text == nullptr || text->marker() == nullptr || text->marker()->size() == 0 ||
      text->token() == nullptr || text->token()->size() == 0) {
    return diag->Fail(Status::kBadBundle, "model.vision.text has no marker or no token");
  }
  spec->vision = out;
  return Status::kOk;
}

}  // namespace arn
