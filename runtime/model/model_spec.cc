#include "runtime/model/model_spec.h"

#include "kernels/pack/pack.h"
#include "platform/base/arith.h"
#include "runtime/bundle/optional_fields.h"
#include "runtime/model/field_checks.h"
#include "runtime/model/read_encoder.h"
#include "runtime/model/read_enums.h"
#include "runtime/model/read_kind.h"
#include "runtime/model/read_layer.h"
#include "runtime/model/read_pooling.h"
#include "runtime/model/read_rope.h"
#include "runtime/model/read_streams.h"
#include "runtime/model/read_tensor.h"
#include "runtime/model/read_vision.h"
#include "runtime/model/tensor_shapes.h"

namespace arn {
namespace {

// Bounds far above any known model. They keep every product below in 64 bits and limit the memory
// that a hostile bundle can request.
constexpr uint32_t kMaxLayers = 4096;
constexpr uint32_t kMaxKinds = 256;
constexpr uint32_t kMaxTensors = 1u << 20;

Status ReadPositions(const fbs::Model& model, ModelSpec* out, Diag* diag) {
  if (model.positions() == kNoIndex) return Status::kOk;
  if (model.positions() >= out->weights.size()) {
    return diag->Fail(Status::kBadBundle, "model.positions: tensor %u of %zu", model.positions(),
                      out->weights.size());
  }
  const Weight& w = out->weights[model.positions()];
  if (w.is_vector || w.dtype != DType::kF32 || w.layout.order != WeightOrder::kRows ||
      w.rows < model.max_context() || w.cols != model.hidden()) {
    return diag->Fail(Status::kBadBundle,
                      "model.positions: tensor %u is a %s matrix of [%u, %u], expected f32 rows of "
                      "[%u or more, %u]",
                      model.positions(), DTypeName(w.dtype), w.rows, w.cols, model.max_context(),
                      model.hidden());
  }
  out->positions = model.positions();
  return Status::kOk;
}

// REQUIRES: out->layers has its size.
Status ReadPerLayer(const fbs::Model& model, ModelSpec* out, Diag* diag) {
  PerLayerSpec& spec = out->per_layer;
  const uint64_t n_layers = model.layers()->size();
  ARN_TRY(CheckRange("per_layer_width", model.per_layer_width(), 0,
                     static_cast<uint32_t>(kMaxWidth / n_layers), diag));
  spec.width = model.per_layer_width();
  if (spec.width == 0) return Status::kOk;
  const uint64_t width = n_layers * spec.width;
  Shapes shapes(out->weights, diag);
  ARN_TRY(shapes.Matrix("per_layer_embedding", 0, model.per_layer_embedding(), model.vocab(), width,
                        &spec.embedding));
  ARN_TRY(shapes.Matrix("per_layer_projection", 0, model.per_layer_projection(), width,
                        model.hidden(), &spec.projection));
  ARN_TRY(shapes.Vector("per_layer_norm", 0, model.per_layer_norm(), spec.width, &spec.norm));
  ARN_TRY(CheckFinite("per_layer_factor", model.per_layer_factor(), diag));
  ARN_TRY(CheckEpsilon("per_layer_norm_epsilon", model.per_layer_norm_epsilon(), diag));
  spec.factor = model.per_layer_factor();
  spec.norm_epsilon = model.per_layer_norm_epsilon();
  return Status::kOk;
}

// Reads the dense layer between final norm and head.
Status ReadHeadDense(const fbs::Model& model, Shapes shapes, ModelSpec* out, Diag* diag) {
  if (model.head_dense() == kNoIndex) return Status::kOk;
  const uint32_t n_layers = model.layers()->size();
  ARN_TRY(shapes.Matrix("head_dense", n_layers, model.head_dense(), model.hidden(), model.hidden(),
                        &out->head_dense));
  ARN_TRY(ReadNorm("head_norm", n_layers, model.head_norm(), model.head_norm_bias(),
                   out->final_norm_kind, model.hidden(), &shapes, &out->head_norm,
                   &out->head_norm_bias));
  ARN_TRY(ReadActivation("head_activation", model.head_activation(), &out->head_activation, diag));
  const bool is_plain = out->head_activation != Activation::kClampedSwiglu &&
                        out->head_activation != Activation::kXielu;
  if (out->head_norm != kNoWeight && out->makes_text && out->streams.n == 0 && is_plain) {
    return Status::kOk;
  }
  return diag->Fail(Status::kBadBundle,
                    "model.head_dense without a norm, a head or a plain activation");
}

}  // namespace

uint64_t ModelSpecBytes(const fbs::Model& model) {
  return CountOf(model.tensors()) * sizeof(Weight) +
         CountOf(model.ropes()) * (sizeof(RopeKind) + sizeof(RopeVariants)) +
         CountOf(model.kinds()) * sizeof(LayerKindSpec) +
         CountOf(model.layers()) * sizeof(LayerSpec) + EncoderSpecBytes(model.encoder()) +
         PoolingSpecBytes(model.pooling()) + VisionSpecBytes(model.vision()) + 5 * kSliceAlign;
}

Status ReadModelSpec(const Bundle& bundle, Arena* arena, ModelSpec* out, Diag* diag) {
  *out = ModelSpec();
  const fbs::Model& model = *bundle.index->model();
  if (bundle.index->pack_version() != kPackVersion) {
    return diag->Fail(Status::kBundleVersion,
                      "weights are packed in version %u, this library reads %u: convert again",
                      bundle.index->pack_version(), kPackVersion);
  }
  ARN_TRY(CheckRange("hidden", model.hidden(), 1, kMaxWidth, diag));
  ARN_TRY(CheckRange("vocab", model.vocab(), 1, kMaxVocab, diag));
  ARN_TRY(CheckRange("max_context", model.max_context(), 1, kMaxContext, diag));
  ARN_TRY(CheckRange("kinds", CountOf(model.kinds()), 1, kMaxKinds, diag));
  ARN_TRY(CheckRange("ropes", CountOf(model.ropes()), 0, kMaxRopeKinds, diag));
  ARN_TRY(CheckRange("layers", CountOf(model.layers()), 1, kMaxLayers, diag));
  ARN_TRY(CheckRange("tensors", CountOf(model.tensors()), 1, kMaxTensors, diag));
  ARN_TRY(CheckEpsilon("final_norm_epsilon", model.final_norm_epsilon(), diag));
  out->hidden = model.hidden();
  out->vocab = model.vocab();
  out->max_context = model.max_context();
  out->final_norm_epsilon = model.final_norm_epsilon();
  out->is_bidirectional = model.is_bidirectional();

  ARN_ASSIGN(Span<Weight> weights, arena->AllocateArray<Weight>(model.tensors()->size()));
  for (uint32_t i = 0; i < weights.size(); ++i) {
    ARN_TRY(ReadTensor(bundle, *model.tensors()->Get(i), &weights[i], diag));
    out->weight_bytes += weights[i].bytes;
    out->n_parameters += uint64_t{weights[i].rows} * weights[i].cols;
  }
  out->weights = weights;
  out->file = bundle.file;

  ARN_ASSIGN(Span<RopeKind> ropes, arena->AllocateArray<RopeKind>(CountOf(model.ropes())));
  ARN_ASSIGN(Span<RopeVariants> variants, arena->AllocateArray<RopeVariants>(ropes.size()));
  for (uint32_t i = 0; i < ropes.size(); ++i) {
    ARN_TRY(ReadRope(*model.ropes()->Get(i), &ropes[i], &variants[i], diag));
  }
  out->ropes = ropes;
  out->rope_variants = variants;

  ARN_ASSIGN(Span<LayerKindSpec> kinds, arena->AllocateArray<LayerKindSpec>(model.kinds()->size()));
  for (uint32_t i = 0; i < kinds.size(); ++i) {
    ARN_TRY(ReadKind(*model.kinds()->Get(i), out->ropes, &kinds[i], diag));
    if (out->is_bidirectional) {
      kinds[i].group = kNoGroup;
    } else {
      ARN_TRY(PlaceInGroup(&kinds[i], out, diag));
    }
  }
  out->kinds = kinds;
  ARN_TRY(CheckFinite("embedding_factor", model.embedding_factor(), diag));
  out->embedding = model.embedding();
  out->embedding_factor = model.embedding_factor();
  if (model.encoder() != nullptr) ARN_TRY(ReadEncoder(*model.encoder(), arena, out, diag));

  ARN_TRY(ReadPerLayer(model, out, diag));
  ARN_TRY(ReadStreams(model, out, diag));
  ARN_ASSIGN(Span<LayerSpec> layers, arena->AllocateArray<LayerSpec>(model.layers()->size()));
  out->layers = layers;
  for (uint32_t i = 0; i < layers.size(); ++i) {
    ARN_TRY(ReadLayer(*model.layers()->Get(i), i, out, &layers[i], diag));
  }
  for (uint32_t g = 0; g < out->n_groups; ++g) {
    if (out->groups[g].n_layers == 0) {
      return diag->Fail(Status::kBadBundle, "model.kinds: a layer kind that no layer uses");
    }
  }

  if (out->n_groups == 0 && !out->is_bidirectional) {
    return diag->Fail(Status::kUnsupported, "model.layers: none mixes tokens");
  }

  Shapes shapes(out->weights, diag);
  const uint32_t n_layers = model.layers()->size();
  ARN_TRY(shapes.Matrix("embedding", 0, model.embedding(), model.vocab(), model.hidden()));
  ARN_TRY(ReadNormKind("final_norm_kind", model.final_norm_kind(), &out->final_norm_kind, diag));
  ARN_TRY(ReadNorm("final_norm", n_layers, model.final_norm(), model.final_norm_bias(),
                   out->final_norm_kind, model.hidden(), &shapes, &out->final_norm,
                   &out->final_norm_bias));
  if (out->final_norm == kNoWeight && !out->is_bidirectional) {
    return diag->Fail(Status::kBadBundle, "model.final_norm is absent");
  }
  out->makes_text = model.head() != kNoIndex;
  if (out->makes_text && out->is_bidirectional) {
    return diag->Fail(Status::kBadBundle, "model.head: a bidirectional model has none");
  }
  if (out->makes_text) {
    ARN_TRY(shapes.Matrix("head", n_layers, model.head(), model.vocab(), model.hidden()));
    out->head = model.head();
  }
  ARN_TRY(ReadHeadDense(model, shapes, out, diag));
  ARN_TRY(ReadNorm("embedding_norm", 0, model.embedding_norm(), model.embedding_norm_bias(),
                   out->final_norm_kind, model.hidden(), &shapes, &out->embedding_norm,
                   &out->embedding_norm_bias));
  ARN_TRY(CheckFinite("logits_factor", model.logits_factor(), diag));
  ARN_TRY(CheckSoftcap("logits_softcap", model.logits_softcap(), diag));
  out->logits_factor = model.logits_factor();
  out->logits_softcap = model.logits_softcap();
  ARN_TRY(ReadPositions(model, out, diag));
  if (model.vision() != nullptr) ARN_TRY(ReadVision(*model.vision(), arena, out, diag));
  return ReadPooling(model, arena, out, diag);
}

}  // namespace arn
