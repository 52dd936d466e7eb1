#include "converter/tensors/tensor_plan.h"

#include <algorithm>

#include "converter/base/error.h"
#include "converter/tensors/planner.h"
#include "platform/base/arith.h"

namespace arn::convert {
namespace {

SourcePart Whole(const Checkpoint::Entry* entry, uint32_t rows) {
  SourcePart part;
  part.weight = entry;
  part.rows = rows;
  return part;
}

// Reorders rows of heads from RoPE pairs (0, 1), (2, 3), ... to pairs half of the rotated part
// apart. Leaves q.k unchanged, because both get the same order.
void AppendPairsApart(const SourcePart& whole, uint32_t n_heads, uint32_t head_dim,
                      uint32_t rotary_dim, std::vector<SourcePart>* parts) {
  for (uint32_t h = 0; h < n_heads; ++h) {
    SourcePart part = whole;
    for (uint32_t side = 0; side < 2; ++side) {
      part.rows = rotary_dim / 2;
      part.first_row = h * head_dim + side;
      part.block_rows = 1;
      part.block_stride = 2;
      parts->push_back(part);
    }
    if (rotary_dim == head_dim) continue;
    part.rows = head_dim - rotary_dim;
    part.first_row = h * head_dim + rotary_dim;
    part.block_rows = part.block_stride = 0;
    parts->push_back(part);
  }
}

// Takes the queries (half 0) or their gates (half 1) of [q, gate] of each head.
SourcePart HalfOfHeads(SourcePart q, const LayerKindSpec& kind, uint32_t half) {
  q.rows = kind.n_heads * kind.head_dim;
  q.first_row = half * kind.head_dim;
  q.block_rows = kind.head_dim;
  q.block_stride = 2 * kind.head_dim;
  return q;
}

}  // namespace

std::string LayerName(const char* pattern, uint32_t layer) {
  std::string name = pattern;
  const size_t at = name.find("{}");
  if (at != std::string::npos) name.replace(at, 2, std::to_string(layer));
  return name;
}

std::string OwnName(uint32_t layer, const char* name) {
  return "layers." + std::to_string(layer) + "." + name;
}

Planner::Planner(const DecoderSpec& spec, const Checkpoint& checkpoint, const Formats& formats,
                 std::vector<std::string>* warnings)
    : spec_(spec),
      formats_(formats),
      warnings_(warnings),
      sources_(checkpoint, spec.names->prefix, spec.names->older_prefix, spec.architecture) {}

TensorPlan Planner::Make() {
  const TensorNames& names = *spec_.names;
  const Checkpoint::Entry* embedding = EmbeddingSource();
  const Checkpoint::Entry* head = HeadSource(embedding);
  const bool is_shared = head == embedding && formats_.embedding == formats_.head;
  // Stores a lookup-only table row by row; one that is also a matmul operand gets the kernel's
  // layout.
  plan_.embedding = AddMatrix("embedding", formats_.embedding, is_shared,
                              {Whole(embedding, spec_.vocab)}, spec_.hidden);
  if (names.positions != nullptr) {
    const Checkpoint::Entry* positions =
        sources_.Take(WeightName(names.positions), {spec_.max_context, spec_.hidden});
    plan_.positions = AddMatrix("positions", DType::kF32, false,
                                {Whole(positions, spec_.max_context)}, spec_.hidden);
  }
  AddEncoder();
  if (names.relative_position_bias != nullptr) {
    relative_position_bias_ = AddRelativePositionBias("distance_bias", names.relative_position_bias,
                                                      spec_.kinds[0].n_heads, false);
  }
  for (uint32_t i = 0; i < spec_.layer_kinds.size(); ++i) {
    AddLayer(i, spec_.kinds[spec_.layer_kinds[i]]);
  }
  AddNorm("final_norm", names.final_norm, spec_.final_norm_kind, spec_.hidden, &plan_.final_norm,
          &plan_.final_norm_bias);
  plan_.head =
      is_shared ? plan_.embedding
                : AddMatrix("head", formats_.head, true, {Whole(head, spec_.vocab)}, spec_.hidden);
  for (const char* copy : names.embedding_copies) {
    if (copy != nullptr) sources_.AllowCopy(WeightName(copy), embedding);
  }
  sources_.FailMissing(WeightName(names.head), " (tie_word_embeddings is false)");
  if (const size_t n = names.extra_head == nullptr ? 0 : sources_.LeaveOut(names.extra_head)) {
    warnings_->push_back(Format("left out: %s* (%zu tensors), a head that predicts further tokens",
                                names.extra_head, n));
  }
  sources_.RefuseExtra();
  return std::move(plan_);
}

// Finds a tied pair under either name.
const Checkpoint::Entry* Planner::EmbeddingSource() {
  std::string name = WeightName(spec_.names->embedding);
  const std::string head = WeightName(spec_.names->head);
  if (const char* other = spec_.names->other_embedding) {
    if (!sources_.Has(name) && sources_.Has(WeightName(other))) name = WeightName(other);
  }
  const bool is_under_head = spec_.tied && !sources_.Has(name) && sources_.Has(head);
  return sources_.Take(is_under_head ? head : name, {spec_.vocab, spec_.hidden});
}

// As transformers' tie_weights(): a tied head stored as its own tensor is tied only if both are
// equal.
const Checkpoint::Entry* Planner::HeadSource(const Checkpoint::Entry* embedding) {
  const std::string name = WeightName(spec_.names->head);
  if (spec_.tied && !sources_.Has(name)) return embedding;
  const Checkpoint::Entry* head = sources_.Take(name, {spec_.vocab, spec_.hidden});
  if (!spec_.tied || embedding == nullptr) return head;
  if (head == embedding || SameValues(*embedding, *head)) return embedding;
  warnings_->push_back("tie_word_embeddings is true, but " + name +
                       " differs from the embedding: both are kept");
  return head;
}

void Planner::AddLayer(uint32_t i, const LayerKindSpec& kind) {
  LayerTensors layer;
  const LayerScope scope = {i, spec_.names, false};
  AddAttention(scope, kind, &layer);
  if (kind.has_cross_attention) AddCross(i, kind, &layer);
  AddFeedForward(scope, kind, &layer);
  layer.relative_position_bias =
      kind.has_relative_position_bias ? relative_position_bias_ : kNoTensor;
  plan_.layers.push_back(layer);
}

void Planner::AddAttention(const LayerScope& scope, const LayerKindSpec& kind,
                           LayerTensors* layer) {
  const TensorNames& names = *scope.names;
  const uint32_t hidden = spec_.hidden, q_rows = kind.n_heads * kind.head_dim;
  if (kind.mixer == Mixer::kNone) return;
  if (names.attention_norm != nullptr) {
    AddNorm(scope.Own("attention_norm"), scope.Stored(names.attention_norm), kind.norm, hidden,
            &layer->attention_norm, &layer->attention_norm_bias);
  }
  if (kind.has_state()) AddMixer(scope.layer, kind, layer);
  if (kind.has_attention()) {
    layer->qkv = AddMatrix(scope.Own("qkv"), formats_.weights, true, QkvParts(scope, kind), hidden);
  }
  if (kind.has_attention_gate) {
    const SourcePart q = Part(scope.Stored(names.q), 2 * q_rows, hidden, kind.has_qkv_bias);
    layer->attention_gate = AddMatrix(scope.Own("attention_gate"), formats_.weights, true,
                                      {HalfOfHeads(q, kind, 1)}, hidden);
  }
  if (kind.has_qk_norm) {
    const auto norm = [&](const char* name, const char* pattern, uint32_t n_heads) {
      const uint32_t count = (kind.qk_norm_spans_heads ? n_heads : 1) * kind.head_dim;
      if (pattern == nullptr) return AddOnes(scope.Own(name), count);
      return AddVector(scope.Own(name), WeightName(scope.Stored(pattern)), count,
                       spec_.norm_offset);
    };
    layer->q_norm = norm("q_norm", names.q_norm, kind.n_heads);
    layer->k_norm = norm("k_norm", names.k_norm, kind.n_kv_heads);
  }
  if (names.sinks != nullptr && kind.has_attention()) {
    layer->sinks = AddVector(scope.Own("sinks"), scope.Stored(names.sinks), kind.n_heads, 0.0f);
  }
  const auto add_out = [&](const char* name, const char* pattern, uint32_t cols, bool bias,
                           float factor) {
    return AddMatrix(scope.Own(name), formats_.weights, true,
                     {OutPart(scope.Stored(pattern), cols, bias, factor)}, cols);
  };
  if (kind.has_state()) {
    (kind.is_hybrid ? layer->mixer_out : layer->attention_out) =
        add_out(kind.is_hybrid ? "mixer_out" : "attention_out", names.mixer_out,
                kind.mixer_out_width(), kind.has_mixer_out_bias, spec_.factors.mixer_out);
  }
  if (kind.has_attention()) {
    layer->attention_out = add_out("attention_out", names.attention_out, q_rows,
                                   kind.has_attention_out_bias, spec_.factors.attention_out);
  }
  if (names.attention_post_norm != nullptr) {
    layer->attention_post_norm =
        AddVector(scope.Own("attention_post_norm"),
                  WeightName(scope.Stored(names.attention_post_norm)), hidden, spec_.norm_offset);
  }
}

void Planner::AddFeedForward(const LayerScope& scope, const LayerKindSpec& kind,
                             LayerTensors* layer) {
  const TensorNames& names = *scope.names;
  const uint32_t hidden = spec_.hidden;
  if (names.ffn_norm != nullptr && kind.ffn_dim != 0) {
    AddNorm(scope.Own("ffn_norm"), scope.Stored(names.ffn_norm), kind.norm, hidden,
            &layer->ffn_norm, &layer->ffn_norm_bias);
  }
  if (kind.n_experts != 0) {
    AddExperts(scope.layer, kind, layer);
  } else if (kind.ffn_dim != 0) {
    layer->gate_up =
        AddMatrix(scope.Own("gate_up"), formats_.weights, true, UpParts(scope, kind), hidden);
    layer->down = AddMatrix(
        scope.Own("down"), formats_.weights, true,
        {OutPart(scope.Stored(names.down), kind.ffn_dim, kind.has_mlp_bias, spec_.factors.down)},
        kind.ffn_dim);
  }
  if (names.ffn_post_norm != nullptr) {
    layer->ffn_post_norm =
        AddVector(scope.Own("ffn_post_norm"), WeightName(scope.Stored(names.ffn_post_norm)), hidden,
                  spec_.norm_offset);
  }
}

SourcePart Planner::Part(const std::string& base, uint32_t rows, uint32_t cols, bool bias) {
  SourcePart part;
  part.weight =
      sources_.Take(WeightName(base), spec_.is_transposed ? std::vector<uint64_t>{cols, rows}
                                                          : std::vector<uint64_t>{rows, cols});
  part.bias = bias ? sources_.Take(base + ".bias", {rows}) : nullptr;
  part.rows = rows;
  part.transposed_rows = spec_.is_transposed ? rows : 0;
  return part;
}

SourcePart Planner::OutPart(const std::string& base, uint32_t cols, bool bias, float factor) {
  SourcePart part = Part(base, spec_.hidden, cols, bias);
  part.factor = spec_.residual_factor * factor;
  return part;
}

std::vector<SourcePart> Planner::QkvParts(const LayerScope& scope, const LayerKindSpec& kind) {
  const TensorNames& names = *scope.names;
  const uint32_t q_rows = kind.n_heads * kind.head_dim;
  const uint32_t kv_rows = kind.n_kv_heads * kind.head_dim;
  const uint32_t hidden = spec_.hidden;
  const bool bias = kind.has_qkv_bias;
  if (names.qkv == nullptr) {
    SourcePart q =
        Part(scope.Stored(names.q), (kind.has_attention_gate ? 2 : 1) * q_rows, hidden, bias);
    if (kind.has_attention_gate) q = HalfOfHeads(q, kind, 0);
    SourcePart k = Part(scope.Stored(names.k), kv_rows, hidden, bias && kind.has_k_bias);
    SourcePart v = Part(scope.Stored(names.v), kv_rows, hidden, bias);
    q.input_factor = k.input_factor = v.input_factor = spec_.factors.attention_in;
    k.factor = spec_.factors.k;
    if (!spec_.rotates_neighbours || kind.rope == kNoRope) return {q, k, v};
    const uint32_t rotary_dim = spec_.ropes[kind.rope].rotary_dim;
    std::vector<SourcePart> parts;
    AppendPairsApart(q, kind.n_heads, kind.head_dim, rotary_dim, &parts);
    AppendPairsApart(k, kind.n_kv_heads, kind.head_dim, rotary_dim, &parts);
    parts.push_back(v);
    return parts;
  }
  const SourcePart whole = Part(scope.Stored(names.qkv), q_rows + 2 * kv_rows, hidden, bias);
  if (spec_.qkv_order == QkvOrder::kBlocks) return {whole};
  if (kind.n_heads != kind.n_kv_heads) {
    Fail("%s: q, k and v interleaved by head need as many kv heads as heads, found %u and %u",
         spec_.architecture.c_str(), kind.n_kv_heads, kind.n_heads);
  }
  std::vector<SourcePart> parts(3, whole);
  for (uint32_t p = 0; p < 3; ++p) {
    parts[p].rows = q_rows;
    parts[p].first_row = p * kind.head_dim;
    parts[p].block_rows = kind.head_dim;
    parts[p].block_stride = 3 * kind.head_dim;
  }
  return parts;
}

std::vector<SourcePart> Planner::UpParts(const LayerScope& scope, const LayerKindSpec& kind) {
  const TensorNames& names = *scope.names;
  const uint32_t ffn = kind.ffn_dim, hidden = spec_.hidden;
  if (names.gate_up != nullptr) {
    return {Part(scope.Stored(names.gate_up), 2 * ffn, hidden, kind.has_mlp_bias)};
  }
  std::vector<SourcePart> parts;
  if (kind.is_gated) {
    parts.push_back(Part(scope.Stored(names.gate), ffn, hidden, kind.has_mlp_bias));
    parts.back().factor = spec_.factors.gate;
  }
  const bool is_plain = !kind.is_gated && names.plain_up != nullptr;
  parts.push_back(
      Part(scope.Stored(is_plain ? names.plain_up : names.up), ffn, hidden, kind.has_mlp_bias));
  return parts;
}

void Planner::AddNorm(const std::string& name, const std::string& source, NormKind kind,
                      uint32_t count, uint32_t* weight, uint32_t* bias) {
  *weight = AddVector(name, WeightName(source), count, spec_.norm_offset);
  if (kind == NormKind::kLayer) *bias = AddVector(name + "_bias", source + ".bias", count, 0.0f);
}

uint32_t Planner::AddVector(const std::string& name, const std::string& source, uint32_t count,
                            float offset) {
  const uint32_t index = AddOnes(name, count);
  PlannedTensor& tensor = plan_.tensors[index];
  tensor.offset = offset;
  tensor.parts = {Whole(sources_.Take(source, {count}), 1)};
  return index;
}

uint32_t Planner::AddOnes(const std::string& name, uint32_t count) {
  PlannedTensor tensor;
  tensor.name = name;
  tensor.is_vector = true;
  tensor.offset = 1.0f;
  tensor.rows = 1;
  tensor.cols = count;
  plan_.tensors.push_back(std::move(tensor));
  return static_cast<uint32_t>(plan_.tensors.size() - 1);
}

uint32_t Planner::AddMatrix(const std::string& name, DType dtype, bool is_multiplied,
                            std::vector<SourcePart> parts, uint32_t cols) {
  PlannedTensor tensor;
  tensor.name = name;
  const auto exception = formats_.exceptions.find(name);
  tensor.dtype = dtype = exception == formats_.exceptions.end() ? dtype : exception->second;
  if (is_multiplied) tensor.layout = TargetLayout(*formats_.target, dtype);
  uint64_t rows = 0;
  for (const SourcePart& p : parts) rows += p.rows;
  tensor.rows = static_cast<uint32_t>(rows);
  tensor.cols = cols;
  tensor.parts = std::move(parts);
  uint64_t bytes = 0;
  if (rows > UINT32_MAX || !PackedBytes(dtype, tensor.layout, tensor.rows, cols, &bytes)) {
    Fail("tensor %s: %llu rows of %u %s elements cannot be packed for %s", name.c_str(),
         static_cast<unsigned long long>(rows), cols, DTypeName(dtype), formats_.target->name);
  }
  plan_.tensors.push_back(std::move(tensor));
  return static_cast<uint32_t>(plan_.tensors.size() - 1);
}

bool PlannedTensor::has_bias() const {
  return std::any_of(parts.begin(), parts.end(),
                     [](const SourcePart& part) { return part.bias != nullptr; });
}

TensorPlan MakeTensorPlan(const DecoderSpec& spec, const Checkpoint& checkpoint,
                          const Formats& formats, std::vector<std::string>* warnings) {
  return Planner(spec, checkpoint, formats, warnings).Make();
}

}  // namespace arn::convert
