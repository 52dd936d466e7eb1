#include "runtime/model/model_spec.h"

#include <cinttypes>
#include <cmath>

#include "kernels/pack/pack.h"
#include "platform/base/arith.h"

namespace arn {
namespace {

// Bounds far above any known model. They keep every product below in 64 bits and stop a hostile
// bundle from asking for absurd memory.
constexpr uint32_t kMaxLayers = 4096;
constexpr uint32_t kMaxKinds = 256;
constexpr uint32_t kMaxTensors = 1u << 20;
constexpr uint32_t kMaxHeads = 4096;
constexpr uint32_t kMaxHeadDim = 1024;
constexpr uint32_t kMaxWidth = 1u << 20;
constexpr uint32_t kMaxVocab = 1u << 22;
constexpr uint32_t kMaxContext = 1u << 24;
constexpr uint32_t kNoIndex = UINT32_MAX;  // of an absent field of fbs::Layer

Status CheckRange(const char* field, uint64_t value, uint64_t low, uint64_t high, Diag* diag) {
  if (value >= low && value <= high) return Status::kOk;
  return diag->Fail(Status::kBadBundle, "model.%s is %" PRIu64 ", expected %" PRIu64 "..%" PRIu64,
                    field, value, low, high);
}

Status CheckFinite(const char* field, float value, Diag* diag) {
  if (std::isfinite(value)) return Status::kOk;
  return diag->Fail(Status::kBadBundle, "model.%s is not a finite number", field);
}

Status CheckEpsilon(const char* field, float value, Diag* diag) {
  if (std::isfinite(value) && value >= 0.0f && value <= 1.0f) return Status::kOk;
  return diag->Fail(Status::kBadBundle, "model.%s is %g, expected 0..1", field,
                    static_cast<double>(value));
}

Status ReadDType(const fbs::Tensor& tensor, DType* out, Diag* diag) {
  switch (tensor.dtype()) {
    case fbs::DType::F32: *out = DType::kF32; return Status::kOk;
    case fbs::DType::F16: *out = DType::kF16; return Status::kOk;
    case fbs::DType::Bf16: *out = DType::kBf16; return Status::kOk;
    case fbs::DType::Int8: *out = DType::kInt8; return Status::kOk;
    case fbs::DType::Int4: *out = DType::kInt4; return Status::kOk;
  }
  return diag->Fail(Status::kUnsupported, "tensor %s: dtype %u is not known to this version",
                    tensor.name()->c_str(), static_cast<unsigned>(tensor.dtype()));
}

Status ReadLayout(const fbs::Tensor& tensor, WeightLayout* out, Diag* diag) {
  const fbs::Layout* layout = tensor.layout();
  if (layout == nullptr) {
    return diag->Fail(Status::kBadBundle, "tensor %s has no layout", tensor.name()->c_str());
  }
  switch (layout->order()) {
    case fbs::WeightOrder::Rows: out->order = WeightOrder::kRows; break;
    case fbs::WeightOrder::Panels: out->order = WeightOrder::kPanels; break;
    default:
      return diag->Fail(Status::kUnsupported, "tensor %s: order %u is not known to this version",
                        tensor.name()->c_str(), static_cast<unsigned>(layout->order()));
  }
  out->nr = layout->nr();
  out->kr = layout->kr();
  out->sr = layout->sr();
  out->planes = layout->planes();
  return Status::kOk;
}

Status ReadTensor(const Bundle& bundle, const fbs::Tensor& tensor, Weight* out, Diag* diag) {
  const char* name = tensor.name()->c_str();  // a key, so the verifier made sure that it is there
  const fbs::Segment* segment = tensor.segment();
  if (segment == nullptr) return diag->Fail(Status::kBadBundle, "tensor %s has no segment", name);
  ARN_TRY(ReadDType(tensor, &out->dtype, diag));
  ARN_TRY(ReadLayout(tensor, &out->layout, diag));
  out->is_vector = tensor.is_vector();
  out->rows = tensor.rows();
  out->cols = tensor.cols();
  uint64_t expected = 0;
  if (out->is_vector) {
    if (out->dtype != DType::kF32 || out->layout.order != WeightOrder::kRows || out->rows != 1 ||
        out->cols == 0 || out->cols > kMaxWidth) {
      return diag->Fail(Status::kBadBundle, "tensor %s: a vector is one f32 row of 1..%u elements",
                        name, kMaxWidth);
    }
    expected = uint64_t{out->cols} * sizeof(float);
  } else if (out->rows == 0 || out->cols == 0 || out->rows > kMaxVocab * 4u ||
             out->cols > kMaxWidth ||
             !PackedBytes(out->dtype, out->layout, out->rows, out->cols, &expected)) {
    return diag->Fail(Status::kBadBundle,
                      "tensor %s: %s [%u, %u] in layout nr %u kr %u sr %u planes %u does not exist",
                      name, DTypeName(out->dtype), out->rows, out->cols, out->layout.nr,
                      out->layout.kr, out->layout.sr, out->layout.planes);
  }
  if (segment->bytes() != expected) {
    return diag->Fail(Status::kBadBundle,
                      "tensor %s: %s [%u, %u] takes %" PRIu64 " bytes, the segment has %" PRIu64,
                      name, DTypeName(out->dtype), out->rows, out->cols, expected,
                      static_cast<uint64_t>(segment->bytes()));
  }
  ARN_TRY(CheckSegment(bundle, *segment, name, diag));
  out->data = bundle.segments.data() + segment->offset();
  out->bytes = segment->bytes();
  return Status::kOk;
}

Status ReadRope(const fbs::RopeKind& rope, RopeKind* out, Diag* diag) {
  ARN_TRY(CheckRange("ropes.rotary_dim", rope.rotary_dim(), 2, kMaxHeadDim, diag));
  ARN_TRY(CheckFinite("ropes.amplitude", rope.amplitude(), diag));
  const uint32_t half = rope.rotary_dim() / 2;
  if (rope.rotary_dim() % 2 != 0 || rope.inv_freq() == nullptr || rope.inv_freq()->size() != half) {
    return diag->Fail(Status::kBadBundle, "model.ropes.inv_freq: rotary_dim %u needs %u values",
                      rope.rotary_dim(), half);
  }
  for (float f : *rope.inv_freq()) ARN_TRY(CheckFinite("ropes.inv_freq", f, diag));
  out->rotary_dim = rope.rotary_dim();
  out->amplitude = rope.amplitude();
  out->inv_freq = {rope.inv_freq()->data(), half};
  return Status::kOk;
}

bool FitsGroup(const AttentionKind& kind, const KvGroupSpec& group) {
  return group.n_kv_heads == kind.n_kv_heads && group.head_dim == kind.head_dim &&
         group.window == kind.window && group.chunk == kind.chunk;
}

Status ReadKind(const fbs::LayerKind& kind, Span<const RopeKind> ropes, ModelSpec* spec,
                LayerKindSpec* out, Diag* diag) {
  AttentionKind& attention = out->attention;
  ARN_TRY(CheckRange("kinds.n_heads", kind.n_heads(), 1, kMaxHeads, diag));
  ARN_TRY(CheckRange("kinds.n_kv_heads", kind.n_kv_heads(), 1, kind.n_heads(), diag));
  ARN_TRY(CheckRange("kinds.head_dim", kind.head_dim(), 2, kMaxHeadDim, diag));
  ARN_TRY(CheckRange("kinds.ffn_dim", kind.ffn_dim(), 1, kMaxWidth / 2, diag));
  ARN_TRY(CheckRange("kinds.window", kind.window(), 0, kMaxContext, diag));
  ARN_TRY(CheckRange("kinds.chunk", kind.chunk(), 0, kMaxContext, diag));
  ARN_TRY(CheckFinite("kinds.attention_scale", kind.attention_scale(), diag));
  ARN_TRY(CheckEpsilon("kinds.norm_epsilon", kind.norm_epsilon(), diag));
  if (kind.n_heads() % kind.n_kv_heads() != 0) {
    return diag->Fail(Status::kBadBundle, "model.kinds: %u heads are not a multiple of %u kv heads",
                      kind.n_heads(), kind.n_kv_heads());
  }
  if (kind.rope() >= ropes.size()) {
    return diag->Fail(Status::kBadBundle, "model.kinds.rope is %u of %zu", kind.rope(),
                      ropes.size());
  }
  if (ropes[kind.rope()].rotary_dim > kind.head_dim()) {
    return diag->Fail(Status::kBadBundle, "model.kinds: rotary_dim %u exceeds head_dim %u",
                      ropes[kind.rope()].rotary_dim, kind.head_dim());
  }
  if (kind.norm() != fbs::NormKind::Rms) {
    return diag->Fail(Status::kUnsupported, "model.kinds.norm %u is not known to this version",
                      static_cast<unsigned>(kind.norm()));
  }
  if (kind.activation() != fbs::Activation::Silu) {
    return diag->Fail(Status::kUnsupported,
                      "model.kinds.activation %u is not known to this version",
                      static_cast<unsigned>(kind.activation()));
  }
  attention.n_heads = kind.n_heads();
  attention.n_kv_heads = kind.n_kv_heads();
  attention.head_dim = kind.head_dim();
  attention.window = kind.window();
  attention.chunk = kind.chunk();
  attention.scale = kind.attention_scale();
  attention.rope = kind.rope();
  out->ffn_dim = kind.ffn_dim();
  out->norm_epsilon = kind.norm_epsilon();
  out->activation = Activation::kSilu;
  out->has_qk_norm = kind.has_qk_norm();

  uint32_t group = 0;
  while (group < spec->n_groups && !FitsGroup(attention, spec->groups[group])) ++group;
  if (group == kMaxKvGroups) {
    return diag->Fail(Status::kUnsupported,
                      "model.kinds: more than %u different KV shapes, windows and chunks",
                      kMaxKvGroups);
  }
  if (group == spec->n_groups) {
    spec->groups[group].n_kv_heads = attention.n_kv_heads;
    spec->groups[group].head_dim = attention.head_dim;
    spec->groups[group].window = attention.window;
    spec->groups[group].chunk = attention.chunk;
    ++spec->n_groups;
  }
  attention.group = group;
  return Status::kOk;
}

// Finds tensor `index` and holds it against the shape that its place asks for.
class Shapes {
 public:
  Shapes(Span<const Weight> weights, Diag* diag) : weights_(weights), diag_(diag) {}

  Status Matrix(const char* place, uint32_t layer, uint32_t index, uint64_t rows, uint64_t cols) {
    return Check(place, layer, index, false, rows, cols);
  }
  Status Vector(const char* place, uint32_t layer, uint32_t index, uint64_t size) {
    return Check(place, layer, index, true, 1, size);
  }

 private:
  Status Check(const char* place, uint32_t layer, uint32_t index, bool is_vector, uint64_t rows,
               uint64_t cols) {
    if (index >= weights_.size()) {
      return diag_->Fail(Status::kBadBundle, "layer %u %s: tensor %u of %zu", layer, place, index,
                         weights_.size());
    }
    const Weight& w = weights_[index];
    if (w.is_vector != is_vector || w.rows != rows || w.cols != cols) {
      return diag_->Fail(Status::kBadBundle,
                         "layer %u %s: tensor %u is a %s of [%u, %u], expected a %s of [%" PRIu64
                         ", %" PRIu64 "]",
                         layer, place, index, w.is_vector ? "vector" : "matrix", w.rows, w.cols,
                         is_vector ? "vector" : "matrix", rows, cols);
    }
    return Status::kOk;
  }

  Span<const Weight> weights_;
  Diag* diag_;
};

// Whose keys and values the layer uses.
Status PlaceKv(const fbs::Layer& layer, uint32_t index, const ModelSpec& spec, LayerSpec* out,
               Diag* diag) {
  if (layer.kv_layer() == kNoIndex) return Status::kOk;
  if (layer.kv_layer() >= index || spec.layers[layer.kv_layer()].shares_kv) {
    return diag->Fail(Status::kBadBundle,
                      "layer %u: kv_layer is %u, expected an earlier layer with its own KV", index,
                      layer.kv_layer());
  }
  const LayerSpec& source = spec.layers[layer.kv_layer()];
  const uint32_t group = spec.kinds[layer.kind()].attention.group;
  if (spec.kinds[source.kind].attention.group != group) {
    return diag->Fail(Status::kBadBundle,
                      "layer %u: kv_layer %u has another KV shape, window or chunk", index,
                      layer.kv_layer());
  }
  out->shares_kv = true;
  out->group_layer = source.group_layer;
  return Status::kOk;
}

Status ReadLayer(const fbs::Layer& layer, uint32_t index, ModelSpec* spec, LayerSpec* out,
                 Diag* diag) {
  if (layer.kind() >= spec->kinds.size()) {
    return diag->Fail(Status::kBadBundle, "layer %u: kind %u of %zu", index, layer.kind(),
                      spec->kinds.size());
  }
  const LayerKindSpec& kind = spec->kinds[layer.kind()];
  const AttentionKind& a = kind.attention;
  const uint64_t hidden = spec->hidden;
  const uint64_t q_width = uint64_t{a.n_heads} * a.head_dim;
  ARN_TRY(PlaceKv(layer, index, *spec, out, diag));
  const uint64_t kv_width = out->shares_kv ? 0 : uint64_t{a.n_kv_heads} * a.head_dim;
  Shapes shapes(spec->weights, diag);
  ARN_TRY(shapes.Vector("attention_norm", index, layer.attention_norm(), hidden));
  ARN_TRY(shapes.Matrix("qkv", index, layer.qkv(), q_width + 2 * kv_width, hidden));
  ARN_TRY(shapes.Matrix("attention_out", index, layer.attention_out(), hidden, q_width));
  ARN_TRY(shapes.Vector("ffn_norm", index, layer.ffn_norm(), hidden));
  ARN_TRY(shapes.Matrix("gate_up", index, layer.gate_up(), 2 * uint64_t{kind.ffn_dim}, hidden));
  ARN_TRY(shapes.Matrix("down", index, layer.down(), hidden, kind.ffn_dim));
  if (kind.has_qk_norm) {
    ARN_TRY(shapes.Vector("q_norm", index, layer.q_norm(), a.head_dim));
    ARN_TRY(shapes.Vector("k_norm", index, layer.k_norm(), a.head_dim));
    out->q_norm = layer.q_norm();
    out->k_norm = layer.k_norm();
  }
  out->kind = layer.kind();
  if (!out->shares_kv) out->group_layer = spec->groups[a.group].n_layers++;
  out->attention_norm = layer.attention_norm();
  out->qkv = layer.qkv();
  out->attention_out = layer.attention_out();
  out->ffn_norm = layer.ffn_norm();
  out->gate_up = layer.gate_up();
  out->down = layer.down();
  return Status::kOk;
}

template <typename V>
uint64_t CountOf(const V* vector) {
  return vector == nullptr ? 0 : vector->size();
}

}  // namespace

uint64_t ModelSpecBytes(const fbs::Model& model) {
  return CountOf(model.tensors()) * sizeof(Weight) + CountOf(model.ropes()) * sizeof(RopeKind) +
         CountOf(model.kinds()) * sizeof(LayerKindSpec) +
         CountOf(model.layers()) * sizeof(LayerSpec) + 4 * kSliceAlign;
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
  ARN_TRY(CheckRange("ropes", CountOf(model.ropes()), 1, kMaxRopeKinds, diag));
  ARN_TRY(CheckRange("layers", CountOf(model.layers()), 1, kMaxLayers, diag));
  ARN_TRY(CheckRange("tensors", CountOf(model.tensors()), 1, kMaxTensors, diag));
  ARN_TRY(CheckEpsilon("final_norm_epsilon", model.final_norm_epsilon(), diag));
  out->hidden = model.hidden();
  out->vocab = model.vocab();
  out->max_context = model.max_context();
  out->final_norm_epsilon = model.final_norm_epsilon();

  ARN_ASSIGN(Span<Weight> weights, arena->AllocateArray<Weight>(model.tensors()->size()));
  for (uint32_t i = 0; i < weights.size(); ++i) {
    ARN_TRY(ReadTensor(bundle, *model.tensors()->Get(i), &weights[i], diag));
    out->weight_bytes += weights[i].bytes;
    out->n_parameters += uint64_t{weights[i].rows} * weights[i].cols;
  }
  out->weights = weights;

  ARN_ASSIGN(Span<RopeKind> ropes, arena->AllocateArray<RopeKind>(model.ropes()->size()));
  for (uint32_t i = 0; i < ropes.size(); ++i) {
    ARN_TRY(ReadRope(*model.ropes()->Get(i), &ropes[i], diag));
  }
  out->ropes = ropes;

  ARN_ASSIGN(Span<LayerKindSpec> kinds, arena->AllocateArray<LayerKindSpec>(model.kinds()->size()));
  for (uint32_t i = 0; i < kinds.size(); ++i) {
    ARN_TRY(ReadKind(*model.kinds()->Get(i), out->ropes, out, &kinds[i], diag));
  }
  out->kinds = kinds;

  ARN_ASSIGN(Span<LayerSpec> layers, arena->AllocateArray<LayerSpec>(model.layers()->size()));
  out->layers = layers;
  for (uint32_t i = 0; i < layers.size(); ++i) {
    ARN_TRY(ReadLayer(*model.layers()->Get(i), i, out, &layers[i], diag));
  }
  for (uint32_t g = 0; g < out->n_groups; ++g) {
    if (out->groups[g].n_layers == 0) {
      return diag->Fail(Status::kBadBundle, "model.kinds: a kind that no layer has");
    }
  }

  Shapes shapes(out->weights, diag);
  const uint32_t n_layers = model.layers()->size();
  ARN_TRY(shapes.Matrix("embedding", 0, model.embedding(), model.vocab(), model.hidden()));
  ARN_TRY(shapes.Vector("final_norm", n_layers, model.final_norm(), model.hidden()));
  ARN_TRY(shapes.Matrix("head", n_layers, model.head(), model.vocab(), model.hidden()));
  out->embedding = model.embedding();
  out->final_norm = model.final_norm();
  out->head = model.head();
  return Status::kOk;
}

}  // namespace arn
