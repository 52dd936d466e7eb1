#include "runtime/model/read_encoder.h"

#include "kernels/pack/pack.h"
#include "platform/base/arith.h"
#include "runtime/bundle/optional_fields.h"
#include "runtime/model/field_checks.h"
#include "runtime/model/read_convolutions.h"
#include "runtime/model/read_enums.h"
#include "runtime/model/read_kind.h"
#include "runtime/model/read_layer.h"
#include "runtime/model/read_tensor.h"

namespace arn {
namespace {

constexpr uint32_t kMaxEncoderLayers = 4096;
constexpr uint32_t kMaxEncoderKinds = 256;
constexpr uint32_t kMaxFrames = 1u << 30;  // keeps their number in 32 bits

// Reads the table of its tokens: its own, or the model's.
Status ReadEmbedding(const fbs::Encoder& encoder, const ModelSpec& spec, EncoderSpec* out,
                     Diag* diag) {
  out->hidden = encoder.hidden() == 0 ? spec.hidden : encoder.hidden();
  ARN_TRY(CheckRange("encoder.hidden", out->hidden, 1, kMaxWidth / 3, diag));
  const bool is_own = encoder.embedding() != kNoIndex;
  out->embedding = is_own ? encoder.embedding() : spec.embedding;
  out->embedding_factor = is_own ? encoder.embedding_factor() : spec.embedding_factor;
  if (encoder.feature_width() != 0) return Status::kOk;
  ARN_TRY(CheckFinite("encoder.embedding_factor", out->embedding_factor, diag));
  Shapes shapes(spec.weights, diag);
  return shapes.Matrix("encoder embedding", 0, out->embedding, spec.vocab, out->hidden);
}

Status ReadPositions(const fbs::Encoder& encoder, const ModelSpec& spec, EncoderSpec* out,
                     Diag* diag) {
  if (encoder.positions() == kNoIndex) return Status::kOk;
  Shapes shapes(spec.weights, diag);
  ARN_TRY(
      shapes.Matrix("encoder positions", 0, encoder.positions(), encoder.max_rows(), out->hidden));
  const Weight& w = spec.weights[encoder.positions()];
  if (w.dtype != DType::kF32 || w.layout.order != WeightOrder::kRows) {
    return diag->Fail(Status::kBadBundle,
                      "model.encoder.positions: tensor %u is %s, expected f32 rows",
                      encoder.positions(), DTypeName(w.dtype));
  }
  out->positions = encoder.positions();
  return Status::kOk;
}

}  // namespace

uint64_t BidirectionalLayersBytes(uint64_t n_kinds, uint64_t n_layers) {
  return n_kinds * sizeof(LayerKindSpec) + n_layers * sizeof(LayerSpec) + 2 * kSliceAlign;
}

uint64_t EncoderSpecBytes(const fbs::Encoder* encoder) {
  if (encoder == nullptr) return 0;
  return BidirectionalLayersBytes(CountOf(encoder->kinds()), CountOf(encoder->layers())) +
         ConvolutionCount(encoder) * sizeof(ConvolutionSpec) + kSliceAlign;
}

Status ReadBidirectionalLayers(const BidirectionalLayers& in, Arena* arena, const ModelSpec& spec,
                               Span<const LayerKindSpec>* out_kinds,
                               Span<const LayerSpec>* out_layers, Diag* diag) {
  const auto n_kinds = static_cast<uint32_t>(CountOf(in.kinds));
  const auto n_layers = static_cast<uint32_t>(CountOf(in.layers));
  if (n_kinds == 0 || n_kinds > kMaxEncoderKinds || n_layers == 0 || n_layers > kMaxEncoderLayers) {
    return diag->Fail(Status::kBadBundle,
                      "model.%s has %u kinds and %u layers, expected 1..%u and 1..%u", in.owner,
                      n_kinds, n_layers, kMaxEncoderKinds, kMaxEncoderLayers);
  }
  ARN_ASSIGN(Span<LayerKindSpec> kinds, arena->AllocateArray<LayerKindSpec>(n_kinds));
  for (uint32_t i = 0; i < kinds.size(); ++i) {
    ARN_TRY(ReadKind(*in.kinds->Get(i), spec.ropes, &kinds[i], diag));
    LayerKindSpec& kind = kinds[i];
    if (kind.mixer != Mixer::kAttention || kind.has_attention_gate || kind.is_latent() ||
        kind.is_parallel || kind.norms_follow_sum || kind.n_experts != 0 || kind.chunk != 0 ||
        kind.query_temperature != 0.0f || kind.qkv_clip != 0.0f ||
        kind.has_low_rank_residual_or_threshold() || kind.activation == Activation::kXielu) {
      return diag->Fail(Status::kUnsupported,
                        "model.%s.kinds: recurrent states, parallel blocks, experts, chunks, "
                        "temperatures, clamps, xielu, low-rank residuals and thresholds are not "
                        "supported",
                        in.owner);
    }
    kind.group = kNoGroup;
  }
  ARN_ASSIGN(Span<LayerSpec> layers, arena->AllocateArray<LayerSpec>(n_layers));
  for (uint32_t i = 0; i < layers.size(); ++i) {
    ARN_TRY(ReadEncoderLayer(*in.layers->Get(i), i, in.hidden, spec, kinds, &layers[i], diag));
  }
  *out_kinds = kinds;
  *out_layers = layers;
  return Status::kOk;
}

Status ReadEncoder(const fbs::Encoder& encoder, Arena* arena, ModelSpec* spec, Diag* diag) {
  EncoderSpec* out = &spec->encoder;
  ARN_TRY(CheckRange("encoder.max_rows", encoder.max_rows(), 1, kMaxEncoderRows, diag));
  ARN_TRY(ReadEmbedding(encoder, *spec, out, diag));
  ARN_TRY(ReadConvolutions(encoder, arena, *spec, out, diag));
  ARN_TRY(CheckRange("encoder.max_rows in frames", out->frames.most(encoder.max_rows()), 1,
                     kMaxFrames, diag));
  ARN_TRY(ReadPositions(encoder, *spec, out, diag));
  const BidirectionalLayers layers = {"encoder", encoder.kinds(), encoder.layers(), out->hidden};
  ARN_TRY(ReadBidirectionalLayers(layers, arena, *spec, &out->kinds, &out->layers, diag));
  ARN_TRY(ReadNormKind("encoder.final_norm_kind", encoder.final_norm_kind(), &out->final_norm_kind,
                       diag));
  ARN_TRY(CheckEpsilon("encoder.final_norm_epsilon", encoder.final_norm_epsilon(), diag));
  Shapes shapes(spec->weights, diag);
  ARN_TRY(ReadNorm("encoder final_norm", 0, encoder.final_norm(), encoder.final_norm_bias(),
                   out->final_norm_kind, out->hidden, &shapes, &out->final_norm,
                   &out->final_norm_bias));
  if (out->final_norm == kNoWeight) {
    return diag->Fail(Status::kBadBundle, "model.encoder.final_norm is absent");
  }
  out->final_norm_epsilon = encoder.final_norm_epsilon();
  out->max_rows = encoder.max_rows();
  if (spec->n_groups == kMaxKvGroups) {
    return diag->Fail(Status::kUnsupported, "model.kinds: no KV group is left for the encoder");
  }
  const LayerKind& shape = spec->kinds[0];
  KvGroupSpec& group = spec->groups[spec->n_groups];
  group.is_encoder = true;
  group.n_kv_heads = shape.n_kv_heads;
  group.head_dim = shape.head_dim;
  out->group = spec->n_groups++;
  return Status::kOk;
}

}  // namespace arn
