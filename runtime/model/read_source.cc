#include "runtime/model/read_source.h"

#include "kernels/pack/pack.h"
#include "platform/base/arith.h"
#include "runtime/model/field_checks.h"
#include "runtime/model/read_enums.h"
#include "runtime/model/read_kind.h"
#include "runtime/model/read_layer.h"
#include "runtime/model/read_tensor.h"

namespace arn {
namespace {

constexpr uint32_t kMaxSourceLayers = 4096;
constexpr uint32_t kMaxSourceKinds = 256;
constexpr uint32_t kNoIndex = UINT32_MAX;

template <typename V>
uint64_t CountOf(const V* vector) {
  return vector == nullptr ? 0 : vector->size();
}

// Reads the two convolutions of kernel size 3; the second has stride 2.
Status ReadFeatures(const fbs::Source& source, const ModelSpec& spec, SourceSpec* out, Diag* diag) {
  if (source.feature_width() == 0) return Status::kOk;
  ARN_TRY(CheckRange("source.feature_width", source.feature_width(), 1, kMaxWidth / 3, diag));
  ARN_TRY(ReadActivation("source.conv_activation", source.conv_activation(), &out->conv_activation,
                         diag));
  if (out->conv_activation == Activation::kClampedSwiglu) {
    return diag->Fail(Status::kBadBundle, "model.source.conv_activation needs a gate");
  }
  Shapes shapes(spec.weights, diag);
  ARN_TRY(shapes.Matrix("source conv1", 0, source.conv1(), spec.hidden,
                        uint64_t{3} * source.feature_width()));
  ARN_TRY(shapes.Matrix("source conv2", 0, source.conv2(), spec.hidden, uint64_t{3} * spec.hidden));
  out->feature_width = source.feature_width();
  out->conv1 = source.conv1();
  out->conv2 = source.conv2();
  return Status::kOk;
}

Status ReadPositions(const fbs::Source& source, const ModelSpec& spec, SourceSpec* out,
                     Diag* diag) {
  if (source.positions() == kNoIndex) return Status::kOk;
  Shapes shapes(spec.weights, diag);
  ARN_TRY(shapes.Matrix("source positions", 0, source.positions(), source.max_rows(), spec.hidden));
  const Weight& w = spec.weights[source.positions()];
  if (w.dtype != DType::kF32 || w.layout.order != WeightOrder::kRows) {
    return diag->Fail(Status::kBadBundle,
                      "model.source.positions: tensor %u is %s, expected f32 rows",
                      source.positions(), DTypeName(w.dtype));
  }
  out->positions = source.positions();
  return Status::kOk;
}

Status ReadLayers(const fbs::Source& source, Arena* arena, const ModelSpec& spec, SourceSpec* out,
                  Diag* diag) {
  ARN_TRY(CheckRange("source.kinds", CountOf(source.kinds()), 1, kMaxSourceKinds, diag));
  ARN_TRY(CheckRange("source.layers", CountOf(source.layers()), 1, kMaxSourceLayers, diag));
  ARN_ASSIGN(Span<LayerKindSpec> kinds,
             arena->AllocateArray<LayerKindSpec>(source.kinds()->size()));
  for (uint32_t i = 0; i < kinds.size(); ++i) {
    ARN_TRY(ReadKind(*source.kinds()->Get(i), spec.ropes, &kinds[i], diag));
    const AttentionKind& a = kinds[i].attention;
    if (kinds[i].mixer.has_state() || kinds[i].is_parallel || kinds[i].n_experts != 0 ||
        a.window != 0 || a.chunk != 0 || a.rope != kNoRope || kinds[i].has_qk_norm ||
        a.temperature != 0.0f) {
      return diag->Fail(Status::kUnsupported,
                        "model.source.kinds: a state, parallel blocks, experts, a window, a chunk, "
                        "a rope, norms of q and k or a temperature");
    }
    kinds[i].attention.group = kNoGroup;
  }
  out->kinds = kinds;
  ARN_ASSIGN(Span<LayerSpec> layers, arena->AllocateArray<LayerSpec>(source.layers()->size()));
  for (uint32_t i = 0; i < layers.size(); ++i) {
    ARN_TRY(ReadSourceLayer(*source.layers()->Get(i), i, spec, kinds, &layers[i], diag));
  }
  out->layers = layers;
  return Status::kOk;
}

}  // namespace

uint64_t SourceSpecBytes(const fbs::Source* source) {
  if (source == nullptr) return 0;
  return CountOf(source->kinds()) * sizeof(LayerKindSpec) +
         CountOf(source->layers()) * sizeof(LayerSpec) + 2 * kSliceAlign;
}

Status ReadSource(const fbs::Source& source, Arena* arena, ModelSpec* spec, Diag* diag) {
  SourceSpec* out = &spec->source;
  ARN_TRY(CheckRange("source.max_rows", source.max_rows(), 1, kMaxSourceRows, diag));
  ARN_TRY(ReadFeatures(source, *spec, out, diag));
  ARN_TRY(ReadPositions(source, *spec, out, diag));
  ARN_TRY(ReadLayers(source, arena, *spec, out, diag));
  ARN_TRY(ReadNormKind("source.final_norm_kind", source.final_norm_kind(), &out->final_norm_kind,
                       diag));
  ARN_TRY(CheckEpsilon("source.final_norm_epsilon", source.final_norm_epsilon(), diag));
  Shapes shapes(spec->weights, diag);
  ARN_TRY(ReadNorm("source final_norm", 0, source.final_norm(), source.final_norm_bias(),
                   out->final_norm_kind, spec->hidden, &shapes, &out->final_norm,
                   &out->final_norm_bias));
  if (out->final_norm == kNoWeight) {
    return diag->Fail(Status::kBadBundle, "model.source.final_norm is absent");
  }
  out->final_norm_epsilon = source.final_norm_epsilon();
  out->max_rows = source.max_rows();
  if (spec->n_groups == kMaxKvGroups) {
    return diag->Fail(Status::kUnsupported, "model.kinds: no group is left for the source");
  }
  const AttentionKind& shape = spec->kinds[0].attention;
  KvGroupSpec& group = spec->groups[spec->n_groups];
  group.is_source = true;
  group.n_kv_heads = shape.n_kv_heads;
  group.head_dim = shape.head_dim;
  out->group = spec->n_groups++;
  return Status::kOk;
}

}  // namespace arn
