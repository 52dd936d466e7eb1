#include "runtime/model/mtp.h"

#include <new>

#include "runtime/bundle/optional_fields.h"
#include "runtime/model/decoder_program.h"
#include "runtime/model/field_checks.h"
#include "runtime/model/model.h"
#include "runtime/model/read_kind.h"
#include "runtime/model/read_layer.h"
#include "runtime/model/read_tensor.h"
#include "runtime/model/tensor_shapes.h"

namespace arn {
namespace {

constexpr uint32_t kMaxMtpLayers = 64;
constexpr uint32_t kMaxClusters = UINT16_MAX;

// True if a decoder has nothing beside its layers that the head would need with a row. An
// assistant's layers are not like the decoder's.
bool IsPlain(const ModelSpec& spec, bool is_assistant) {
  return spec.makes_text && !spec.encoder.exists() && (spec.per_layer.width == 0 || is_assistant) &&
         spec.streams.n == 0 && spec.embedding_norm == kNoWeight && spec.positions == kNoWeight &&
         spec.head_dense == kNoWeight && spec.final_norm_kind == NormKind::kRms;
}

Status ReadMtpLayers(const fbs::Mtp& mtp, Arena* arena, ModelSpec* out, Diag* diag) {
  const uint64_t n_kinds = CountOf(mtp.kinds()), n_layers = CountOf(mtp.layers());
  if (n_kinds == 0 || n_kinds > n_layers || n_layers > kMaxMtpLayers) {
    return diag->Fail(Status::kBadBundle,
                      "model.mtp has %llu kinds and %llu layers, expected 1..%u layers",
                      static_cast<unsigned long long>(n_kinds),
                      static_cast<unsigned long long>(n_layers), kMaxMtpLayers);
  }
  ARN_ASSIGN(Span<LayerKindSpec> kinds, arena->AllocateArray<LayerKindSpec>(n_kinds));
  for (uint32_t i = 0; i < kinds.size(); ++i) {
    ARN_TRY(ReadKind(*mtp.kinds()->Get(i), out->ropes, &kinds[i], diag));
    if (kinds[i].has_state() || !kinds[i].has_attention()) {
      return diag->Fail(Status::kUnsupported,
                        "model.mtp.kinds: a layer with another mixer than attention");
    }
    ARN_TRY(PlaceInGroup(&kinds[i], out, diag));
  }
  out->kinds = kinds;
  ARN_ASSIGN(Span<LayerSpec> layers, arena->AllocateArray<LayerSpec>(n_layers));
  out->layers = layers;
  for (uint32_t i = 0; i < layers.size(); ++i) {
    ARN_TRY(ReadLayer(*mtp.layers()->Get(i), i, out, &layers[i], diag));
  }
  for (uint32_t g = 0; g < out->n_groups; ++g) {
    if (out->groups[g].n_layers != 0) continue;
    return diag->Fail(Status::kBadBundle, "model.mtp.kinds: a layer kind that no layer uses");
  }
  return Status::kOk;
}

// Reads what an assistant has beside its layers.
Status ReadAssistant(const fbs::Mtp& mtp, const ModelSpec& model, Shapes* shapes, ModelSpec* out,
                     Diag* diag) {
  ARN_TRY(CheckRange("mtp.hidden", mtp.hidden(), 1, kMaxWidth, diag));
  out->hidden = mtp.hidden();
  out->lender = &model;
  out->n_groups = model.n_groups;
  for (uint32_t g = 0; g < model.n_groups; ++g) out->groups[g] = model.groups[g];
  out->logits_factor = 1.0f;
  out->logits_softcap = 0.0f;
  ARN_TRY(
      shapes->Matrix("mtp out", 0, mtp.out(), model.hidden, out->hidden, &out->hidden_input.out));
  ARN_TRY(shapes->Matrix("mtp head", 0, mtp.head(), model.vocab, out->hidden, &out->head));
  ClustersSpec& clusters = out->clusters;
  clusters.n = mtp.n_clusters();
  clusters.n_used = mtp.n_clusters_used();
  if (clusters.n == 0) return Status::kOk;
  if (clusters.n > kMaxClusters || model.vocab % clusters.n != 0 || clusters.n_used == 0 ||
      clusters.n_used > clusters.n) {
    return diag->Fail(Status::kBadBundle, "model.mtp: %u of %u clusters of a vocabulary of %u",
                      clusters.n_used, clusters.n, model.vocab);
  }
  ARN_TRY(shapes->Vector("mtp cluster_ids", 0, mtp.cluster_ids(), model.vocab, &clusters.ids));
  return shapes->Matrix("mtp clusters", 0, mtp.clusters(), clusters.n, out->hidden,
                        &clusters.weight);
}

// Counts what the head alone has: the embedding is the model's, and so is the output matrix but for
// an assistant's.
void CountWeights(const Program& program, ModelSpec* spec) {
  const auto add = [&](WeightId id) {
    const Weight& weight = program.weights[id];
    spec->weight_bytes += weight.bytes;
    spec->n_parameters += uint64_t{weight.rows} * weight.cols;
  };
  if (spec->lender != nullptr) add(spec->head);
  if (spec->clusters.n != 0) add(spec->clusters.ids);
  for (const Step& step : program.steps) {
    if (step.op() == Op::kEmbed || step.op() == Op::kLogits) continue;
    const StepOperands operands = OperandsOf(step);
    for (uint32_t i = 0; i < operands.n_weights; ++i) add(operands.weights[i]);
    for (uint32_t i = 0; i < operands.n_matrices; ++i) add(operands.first_matrix + i);
  }
}

Status ReadMtpSpec(const fbs::Mtp& mtp, const ModelSpec& model, Arena* arena, ModelSpec* out,
                   Diag* diag) {
  const bool is_assistant = mtp.out() != kNoIndex;
  if (!IsPlain(model, is_assistant)) {
    return diag->Fail(Status::kUnsupported,
                      "model.mtp beside an encoder, embeddings of layers, residual streams, "
                      "positions, or norms of the embedding or of a dense head");
  }
  out->hidden = model.hidden;
  out->vocab = model.vocab;
  out->max_context = model.max_context;
  out->ropes = model.ropes;
  out->rope_variants = model.rope_variants;
  out->weights = model.weights;
  out->file = model.file;
  out->embedding = model.embedding;
  out->embedding_factor = model.embedding_factor;
  out->head = model.head;
  out->logits_factor = model.logits_factor;
  out->logits_softcap = model.logits_softcap;
  ARN_TRY(CheckEpsilon("mtp.norm_epsilon", mtp.norm_epsilon(), diag));
  out->final_norm_epsilon = mtp.norm_epsilon();
  out->final_rows_before_norm = mtp.own_rows_before_norm();
  HiddenInputSpec& input = out->hidden_input;
  input.norm_epsilon = mtp.norm_epsilon();
  input.width = model.hidden;
  Shapes shapes(model.weights, diag);
  if (is_assistant) {
    ARN_TRY(ReadAssistant(mtp, model, &shapes, out, diag));
  } else {
    ARN_TRY(shapes.Vector("mtp embedding_norm", 0, mtp.embedding_norm(), model.hidden,
                          &out->embedding_norm));
    ARN_TRY(shapes.Vector("mtp hidden_norm", 0, mtp.hidden_norm(), model.hidden, &input.norm));
  }
  const uint64_t hidden = out->hidden, width = model.hidden;
  ARN_TRY(
      shapes.Matrix("mtp fc_embedding", 0, mtp.fc_embedding(), hidden, width, &input.fc_embedding));
  ARN_TRY(shapes.Matrix("mtp fc_hidden", 0, mtp.fc_hidden(), hidden, width, &input.fc_hidden));
  ARN_TRY(shapes.Vector("mtp final_norm", 0, mtp.final_norm(), hidden, &out->final_norm));
  return ReadMtpLayers(mtp, arena, out, diag);
}

}  // namespace

uint64_t MtpBytes(const fbs::Model& model) {
  const fbs::Mtp* mtp = model.mtp();
  if (mtp == nullptr) return 0;
  const uint64_t n_kinds = CountOf(mtp->kinds()), n_layers = CountOf(mtp->layers());
  return sizeof(Model) + n_kinds * sizeof(LayerKindSpec) + n_layers * sizeof(LayerSpec) +
         DecoderProgramBytes(n_layers, n_kinds) + 3 * kSliceAlign;
}

Status ReadMtp(const Model& model, Arena* arena, const Model** out, Diag* diag) {
  *out = nullptr;
  const fbs::Mtp* mtp = model.bundle.index->model()->mtp();
  if (mtp == nullptr) return Status::kOk;
  ARN_ASSIGN(void* place, arena->Allocate(sizeof(Model), alignof(Model)));
  auto* head = new (place) Model();
  head->bundle = model.bundle;
  ARN_TRY(ReadMtpSpec(*mtp, model.spec, arena, &head->spec, diag));
  Program without_rows;
  ARN_TRY(BuildDecoderProgram(head->spec, arena, &without_rows, &head->program, diag));
  CountWeights(head->program, &head->spec);
  head->has_weights = true;
  head->weights_checked.store(true, std::memory_order_relaxed);  // those of the model
  *out = head;
  return Status::kOk;
}

}  // namespace arn
