#include "runtime/model/read_pooling.h"

#include "kernels/pack/pack.h"
#include "platform/base/arith.h"
#include "runtime/bundle/optional_fields.h"
#include "runtime/model/field_checks.h"
#include "runtime/model/read_dense.h"
#include "runtime/model/read_enums.h"
#include "runtime/model/read_layer.h"
#include "runtime/model/read_tensor.h"
#include "runtime/model/tensor_shapes.h"

namespace arn {
namespace {

constexpr uint32_t kMaxDense = 16;
constexpr uint32_t kMaxPrompts = 1024;

static_assert(static_cast<uint32_t>(fbs::PoolKind::WeightedMean) ==
              static_cast<uint32_t>(PoolKind::kWeightedMean));

// The layers must be able to run without a cache.
Status CheckLayers(const ModelSpec& spec, Diag* diag) {
  const char* what = nullptr;
  for (const LayerKindSpec& kind : spec.kinds) {
    if (kind.mixer != Mixer::kAttention) what = "recurrent states";
    if (kind.is_latent()) what = "latent attention";
    if (kind.has_attention_gate) what = "gated attention";
    if (kind.chunk != 0) what = "chunks";
    if (kind.n_experts != 0) what = "experts";
    if (kind.has_low_rank_residual_or_threshold()) what = "low-rank residuals or thresholds";
  }
  for (const LayerSpec& layer : spec.layers) {
    if (layer.shares_kv) what = "shared keys and values";
    if (layer.sinks != kNoWeight) what = "attention sinks";
    if (layer.relative_position_bias != kNoWeight && !spec.is_bidirectional) {
      what = "relative position biases in one direction";
    }
    if (layer.output_scale != kNoWeight) what = "output scales";
  }
  if (spec.per_layer.width != 0) what = "per-layer embeddings";
  if (spec.streams.n != 0) what = "residual streams";
  if (spec.encoder.exists()) what = "an encoder beside it";
  if (what == nullptr) return Status::kOk;
  return diag->Fail(Status::kUnsupported, "model.pooling: a model with %s is not supported", what);
}

Status CheckTexts(const fbs::Pooling& pooling, Diag* diag) {
  const uint32_t n_prompts = CountOf(pooling.prompts());
  ARN_TRY(CheckRange("pooling.prompts", n_prompts, 0, kMaxPrompts, diag));
  for (uint32_t i = 0; i < n_prompts; ++i) {
    const fbs::Prompt* prompt = pooling.prompts()->Get(i);
    if (prompt->name() != nullptr && prompt->text() != nullptr) continue;
    return diag->Fail(Status::kBadBundle, "model.pooling.prompts %u has no name or no text", i);
  }
  if (pooling.default_prompt() < -1 || pooling.default_prompt() >= int64_t{n_prompts}) {
    return diag->Fail(Status::kBadBundle, "model.pooling.default_prompt is %d of %u",
                      pooling.default_prompt(), n_prompts);
  }
  return Status::kOk;
}

Status ReadTokenTypes(const fbs::Model& model, ModelSpec* spec, Diag* diag) {
  if (model.token_types() == kNoIndex) return Status::kOk;
  Shapes shapes(spec->weights, diag);
  ARN_TRY(shapes.Matrix("token_types", 0, model.token_types(), kTokenTypes, spec->hidden));
  const Weight& w = spec->weights[model.token_types()];
  if (w.dtype != DType::kF32 || w.layout.order != WeightOrder::kRows || !spec->is_bidirectional) {
    return diag->Fail(
        Status::kBadBundle,
        "model.token_types: %s in a %s model, expected f32 rows in a bidirectional one",
        DTypeName(w.dtype), spec->is_bidirectional ? "bidirectional" : "causal");
  }
  spec->token_types = model.token_types();
  return Status::kOk;
}

}  // namespace

uint64_t PoolingSpecBytes(const fbs::Pooling* pooling) {
  return pooling == nullptr ? 0 : CountOf(pooling->dense()) * sizeof(DenseSpec) + kSliceAlign;
}

Status ReadPooling(const fbs::Model& model, Arena* arena, ModelSpec* spec, Diag* diag) {
  ARN_TRY(ReadTokenTypes(model, spec, diag));
  const fbs::Pooling* pooling = model.pooling();
  if (pooling == nullptr) {
    if (spec->makes_text) return Status::kOk;
    return diag->Fail(Status::kBadBundle, "model.pooling is absent in a model without a head");
  }
  ARN_TRY(CheckLayers(*spec, diag));
  PoolingSpec& out = spec->pooling;
  if (pooling->mode() > fbs::PoolKind::WeightedMean) {
    return diag->Fail(Status::kUnsupported, "model.pooling.mode %u is not known to this version",
                      static_cast<unsigned>(pooling->mode()));
  }
  if (static_cast<uint32_t>(pooling->score()) >
      static_cast<uint32_t>(fbs::ScoreRule::LastOfSoftmax)) {
    return diag->Fail(Status::kUnsupported, "model.pooling.score %u is not known to this version",
                      static_cast<unsigned>(pooling->score()));
  }
  ARN_TRY(CheckRange("pooling.max_tokens", pooling->max_tokens(), 1, spec->max_context, diag));
  ARN_TRY(CheckRange("pooling.dense", CountOf(pooling->dense()), 0, kMaxDense, diag));
  out.width = spec->hidden;
  ARN_ASSIGN(Span<DenseSpec> dense, arena->AllocateArray<DenseSpec>(CountOf(pooling->dense())));
  for (uint32_t i = 0; i < dense.size(); ++i) {
    ARN_TRY(ReadDense(*pooling->dense()->Get(i), i, out.width, *spec, &dense[i], diag));
    out.width = dense[i].width;
  }
  ARN_TRY(CheckTexts(*pooling, diag));
  out.dense = dense;
  out.mode = static_cast<PoolKind>(pooling->mode());
  out.is_score = pooling->is_score();
  out.score = static_cast<ScoreRule>(pooling->score());
  out.normalizes = pooling->normalizes();
  out.max_tokens = pooling->max_tokens();
  return Status::kOk;
}

}  // namespace arn
