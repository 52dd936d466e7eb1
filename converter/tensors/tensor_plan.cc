#include "converter/tensors/tensor_plan.h"

#include <algorithm>
#include <cmath>
#include <cstring>

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
// apart. Leaves q.k unchanged, because both get the same order. REQUIRES: the rows of a head are
// contiguous in the tensor.
void AppendPairsApart(const SourcePart& whole, uint32_t n_heads, uint32_t head_dim,
                      uint32_t rotary_dim, uint32_t block, std::vector<SourcePart>* parts) {
  for (uint32_t h = 0; h < n_heads; ++h) {
    const uint32_t first_row = whole.SourceRow(h * head_dim);
    SourcePart part = whole;
    for (uint32_t side = 0; side < 2; ++side) {
      part.rows = rotary_dim / 2;
      part.first_row = first_row + side * block;
      part.block_rows = block;
      part.block_stride = 2 * block;
      parts->push_back(part);
    }
    if (rotary_dim == head_dim) continue;
    part.rows = head_dim - rotary_dim;
    part.first_row = first_row + rotary_dim;
    part.block_rows = part.block_stride = 0;
    parts->push_back(part);
  }
}

// Appends the rows of heads with both halves of each exchanged: what rotates one by the negative
// angles rotates the other by the angles. Leaves q.k unchanged, because both get the same order.
void AppendHalvesExchanged(const SourcePart& whole, uint32_t n_heads, uint32_t head_dim,
                           std::vector<SourcePart>* parts) {
  for (uint32_t half = 0; half < 2 * n_heads; ++half) {
    SourcePart part = whole;
    part.rows = head_dim / 2;
    part.first_row = whole.SourceRow((half ^ 1) * part.rows);
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

// Return the names of the norms before the two blocks; null: there is none.
// True if the norms of a layer are before its blocks only, in spite of those of other layers.
bool HasStateNorms(const TensorNames& names, const LayerKindSpec& kind) {
  return kind.has_state() && names.state_attention_norm != nullptr;
}
const char* AttentionNormName(const TensorNames& names, const LayerKindSpec& kind) {
  if (HasStateNorms(names, kind)) return names.state_attention_norm;
  const bool is_renamed =
      kind.is_parallel && !kind.shares_norm && names.parallel_attention_norm != nullptr;
  return is_renamed ? names.parallel_attention_norm : names.attention_norm;
}
const char* FfnNormName(const TensorNames& names, const LayerKindSpec& kind) {
  if (HasStateNorms(names, kind)) return names.state_ffn_norm;
  const bool is_renamed = kind.is_parallel && names.parallel_ffn_norm != nullptr;
  return is_renamed ? names.parallel_ffn_norm : names.ffn_norm;
}

}  // namespace

std::string LayerName(const char* pattern, uint32_t layer) {
  std::string name = pattern;
  const size_t at = name.find("{}");
  if (at != std::string::npos) name.replace(at, 2, std::to_string(layer));
  return name;
}

bool IsOfEachLayer(const char* pattern) { return std::strstr(pattern, "{}") != nullptr; }

std::string OwnName(uint32_t layer, const char* name) {
  return "layers." + std::to_string(layer) + "." + name;
}

void MoveTensor(uint32_t by, uint32_t* index) {
  if (*index != kNoTensor) *index += by;
}

void MoveLayer(uint32_t by, LayerTensors* layer) {
#define ARN_MOVE(name) MoveTensor(by, &layer->name);
  ARN_LAYER_TENSORS(ARN_MOVE)
#undef ARN_MOVE
}

Planner::Planner(const DecoderSpec& spec, const Checkpoint& checkpoint, const Formats& formats,
                 std::vector<std::string>* warnings)
    : spec_(spec),
      checkpoint_(checkpoint),
      formats_(formats),
      warnings_(warnings),
      sources_(checkpoint, spec.names->prefix, spec.names->older_prefix, spec.architecture),
      hidden_(spec.hidden) {}

TensorPlan Planner::Make() {
  const TensorNames& names = *spec_.names;
  for (const TensorNames::OtherPart& row : names.other_parts) {
    if (row.part != nullptr) sources_.AddOtherPart(row.part, row.other);
  }
  const Checkpoint::Entry* embedding = EmbeddingSource();
  const Checkpoint::Entry* head = spec_.makes_text ? HeadSource(embedding) : nullptr;
  const bool is_shared = spec_.makes_text && head == embedding &&
                         formats_.embedding == formats_.head && !spec_.has_head_bias;
  // Stores a lookup-only table row by row; one that is also a matmul operand gets the kernel's
  // layout.
  SourcePart rows = Whole(embedding, spec_.vocab);
  rows.zero_row = spec_.zero_row;
  plan_.embedding =
      AddMatrix("embedding", formats_.embedding, is_shared || packs_tables(), {rows}, spec_.hidden);
  if (names.positions != nullptr) {
    SourcePart positions;
    positions.weight = sources_.Take(WeightName(names.positions),
                                     {spec_.position_offset + spec_.max_context, spec_.hidden});
    positions.rows = spec_.max_context;
    positions.first_row = spec_.position_offset;
    plan_.positions = AddMatrix("positions", DType::kF32, false, {positions}, spec_.hidden);
  }
  if (names.token_types != nullptr) AddTokenTypes();
  if (names.embedding_norm != nullptr) {
    AddNorm("embedding_norm", names.embedding_norm, spec_.final_norm_kind, spec_.hidden,
            &plan_.embedding_norm, &plan_.embedding_norm_bias);
  }
  if (spec_.per_layer_width != 0) AddPerLayerEmbeddings();
  if (spec_.streams.n != 0) AddStreams();
  AddEncoder(embedding);
  if (names.relative_position_bias != nullptr && !IsOfEachLayer(names.relative_position_bias)) {
    relative_position_bias_ =
        AddRelativePositionBias("relative_position_bias", names.relative_position_bias,
                                spec_.kinds[0].n_heads, spec_.is_bidirectional);
  }
  if (!spec_.alibi_slopes.empty()) AddAlibi();
  for (uint32_t i = 0; i < spec_.layer_kinds.size(); ++i) {
    AddLayer(i, spec_.kinds[spec_.layer_kinds[i]]);
  }
  if (names.final_norm != nullptr) {
    AddNorm("final_norm", names.final_norm, spec_.final_norm_kind, spec_.hidden, &plan_.final_norm,
            &plan_.final_norm_bias);
  }
  if (names.head_dense != nullptr) {
    plan_.head_dense =
        AddMatrix("head_dense", formats_.weights, true,
                  {Part(names.head_dense, spec_.hidden, spec_.hidden, spec_.has_head_dense_bias)},
                  spec_.hidden);
    AddNorm("head_norm", names.head_norm, spec_.final_norm_kind, spec_.hidden, &plan_.head_norm,
            &plan_.head_norm_bias);
  }
  AddPooling(head);
  if (spec_.makes_text) {
    SourcePart head_part = Whole(head, spec_.vocab);
    if (head == embedding) head_part.zero_row = spec_.zero_row;
    if (spec_.has_head_bias) {
      head_part.bias = sources_.Take(std::string(names.head) + ".bias", {spec_.vocab});
    }
    plan_.head = is_shared ? plan_.embedding
                           : AddMatrix("head", formats_.head, true, {head_part}, spec_.hidden);
  }
  AddVision();
  AddMtp();
  for (const char* unused : names.unused) {
    if (unused != nullptr) sources_.LeaveOut(unused);
  }
  for (uint32_t i = 0; names.unused_in_layers != nullptr && i < spec_.layer_kinds.size(); ++i) {
    sources_.LeaveOut(LayerName(names.unused_in_layers, i));
  }
  for (const char* copy : names.embedding_copies) {
    if (copy != nullptr) sources_.AllowCopy(WeightName(copy), embedding);
  }
  sources_.FailMissing(names.head == nullptr ? "" : WeightName(names.head),
                       " (tie_word_embeddings is false)");
  const bool leaves_out = names.extra_head != nullptr && spec_.mtp == nullptr;
  if (const size_t n = leaves_out ? sources_.LeaveOut(names.extra_head) : 0) {
    warnings_->push_back(
        Format("left out: %s* (%zu tensors), a multi-token prediction head", names.extra_head, n));
  }
  LeaveOutExtraLayers();
  sources_.RefuseExtra();
  return std::move(plan_);
}

// Leaves out the layers behind the last, but for one that is the head: transformers does not build
// them either.
void Planner::LeaveOutExtraLayers() {
  const std::string pattern = spec_.names->attention_norm == nullptr
                                  ? std::string(spec_.names->attention_post_norm)
                                  : std::string(spec_.names->attention_norm);
  const std::string start = pattern.substr(0, pattern.find("{}"));
  const auto n_layers = static_cast<uint32_t>(spec_.layer_kinds.size());
  const bool has_mtp = spec_.mtp != nullptr && spec_.mtp->first_layer == n_layers;
  for (uint32_t i = n_layers + (has_mtp ? 1 : 0); i < n_layers + spec_.n_extra_layers; ++i) {
    const std::string prefix = start + std::to_string(i) + ".";
    if (const size_t n = sources_.LeaveOut(prefix)) {
      warnings_->push_back(
          Format("left out: %s* (%zu tensor%s), a layer that predicts further tokens",
                 prefix.c_str(), n, n == 1 ? "" : "s"));
    }
  }
}

// Finds a tied pair under either name.
const Checkpoint::Entry* Planner::EmbeddingSource() {
  std::string name = WeightName(spec_.names->embedding);
  if (const char* other = spec_.names->other_embedding) {
    if (!sources_.Has(name) && sources_.Has(WeightName(other))) name = WeightName(other);
  }
  const std::string head = spec_.makes_text ? WeightName(spec_.names->head) : "";
  const bool is_under_head =
      spec_.makes_text && spec_.tied && !sources_.Has(name) && sources_.Has(head);
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
  const LayerScope scope = {i, spec_.names};
  AddAttention(scope, kind, &layer);
  if (kind.has_cross_attention) AddCross(i, kind, &layer);
  AddFeedForward(scope, kind, &layer);
  AddPerLayer(scope, &layer);
  AddLayerStreams(scope, kind, &layer);
  const char* bias = spec_.names->relative_position_bias;
  if (bias != nullptr && IsOfEachLayer(bias)) {
    relative_position_bias_ =
        AddRelativePositionBias(OwnName(i, "relative_position_bias"), LayerName(bias, i),
                                kind.n_heads, spec_.is_bidirectional);
  }
  layer.relative_position_bias =
      kind.has_relative_position_bias ? relative_position_bias_ : kNoTensor;
  plan_.layers.push_back(layer);
}

void Planner::AddAttention(const LayerScope& scope, const LayerKindSpec& kind,
                           LayerTensors* layer) {
  const TensorNames& names = *scope.names;
  const uint32_t hidden = hidden_, q_rows = kind.n_heads * kind.head_dim;
  if (kind.mixer == Mixer::kNone) return;
  const char* norm_name = AttentionNormName(names, kind);
  if (norm_name != nullptr && (scope.layer != 0 || spec_.has_first_norm)) {
    AddNorm(scope.Own("attention_norm"), scope.Stored(norm_name), kind.norm, hidden,
            &layer->attention_norm, &layer->attention_norm_bias);
  }
  if (kind.has_state()) AddMixer(scope.layer, kind, layer);
  if (kind.is_latent()) {
    AddLatent(scope, kind, layer);
  } else if (kind.has_attention()) {
    layer->qkv = AddMatrix(scope.Own("qkv"), formats_.weights, true, QkvParts(scope, kind), hidden);
  }
  if (kind.has_attention_gate && names.attention_gate != nullptr) {
    layer->attention_gate =
        AddMatrix(scope.Own("attention_gate"), formats_.weights, true,
                  {Part(scope.Stored(names.attention_gate),
                        kind.has_head_gates ? kind.n_heads : q_rows, hidden, false)},
                  hidden);
  } else if (kind.has_attention_gate) {
    const SourcePart q = Part(scope.Stored(names.q), 2 * q_rows, hidden, kind.has_qkv_bias);
    layer->attention_gate = AddMatrix(scope.Own("attention_gate"), formats_.weights, true,
                                      {HalfOfHeads(q, kind, 1)}, hidden);
  }
  if (kind.has_qk_norm) {
    const auto norm = [&](const char* name, const char* pattern, uint32_t n_heads) {
      const uint32_t count = (kind.qk_norm_spans_heads ? n_heads : 1) * kind.head_dim;
      if (pattern == nullptr) return AddConstant(scope.Own(name), count, 1.0f);
      const uint32_t index =
          AddVector(scope.Own(name), WeightName(scope.Stored(pattern)), count, spec_.norm_offset);
      if (spec_.rotates_halves) {
        plan_.tensors[index].parts[0].exchanged_block = kind.head_dim / 4;
      }
      return index;
    };
    layer->q_norm = norm("q_norm", names.q_norm, kind.n_heads);
    if (!SharesKv(scope)) layer->k_norm = norm("k_norm", names.k_norm, kind.n_kv_heads);
  }
  if (kind.has_v_norm && !SharesKv(scope)) {
    layer->v_norm = AddConstant(scope.Own("v_norm"), kind.head_dim, 1.0f);
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
    plan_.tensors[kind.is_hybrid ? layer->mixer_out : layer->attention_out].parts[0].column_turns =
        ValueHeadTurns(kind, 0, kind.linear_value_dim);
  }
  if (kind.has_attention()) {
    const uint32_t cols = kind.is_latent() ? kind.n_heads * kind.latent_value_dim : q_rows;
    layer->attention_out = add_out("attention_out", names.attention_out, cols,
                                   kind.has_attention_out_bias, spec_.factors.attention_out);
  }
  if (names.attention_sub_norm != nullptr) {
    layer->attention_sub_norm =
        AddVector(scope.Own("attention_sub_norm"),
                  WeightName(scope.Stored(names.attention_sub_norm)), q_rows, spec_.norm_offset);
  }
  if (names.attention_post_norm != nullptr && !HasStateNorms(names, kind)) {
    layer->attention_post_norm =
        AddPostNorm(scope.Own("attention_post_norm"), scope.Stored(names.attention_post_norm));
  }
}

void Planner::AddFeedForward(const LayerScope& scope, const LayerKindSpec& kind,
                             LayerTensors* layer) {
  const TensorNames& names = *scope.names;
  const uint32_t hidden = hidden_;
  if (kind.shares_norm) {
    layer->ffn_norm = layer->attention_norm;
    layer->ffn_norm_bias = layer->attention_norm_bias;
  } else if (const char* norm = FfnNormName(names, kind); norm != nullptr && kind.ffn_dim != 0) {
    AddNorm(scope.Own("ffn_norm"), scope.Stored(norm), kind.norm, hidden, &layer->ffn_norm,
            &layer->ffn_norm_bias);
  }
  if (kind.n_experts != 0) {
    AddExperts(scope, kind, layer);
  } else if (kind.ffn_dim != 0) {
    layer->gate_up =
        AddMatrix(scope.Own("gate_up"), formats_.weights, true, UpParts(scope, kind), hidden);
    if (kind.activation == Activation::kXielu) AddActParameters(scope, layer);
    if (names.ffn_sub_norm != nullptr) {
      layer->ffn_sub_norm =
          AddVector(scope.Own("ffn_sub_norm"), WeightName(scope.Stored(names.ffn_sub_norm)),
                    kind.ffn_dim, spec_.norm_offset);
    }
    layer->down = AddMatrix(
        scope.Own("down"), formats_.weights, true,
        {OutPart(scope.Stored(names.down), kind.ffn_dim, kind.has_mlp_bias, spec_.factors.down)},
        kind.ffn_dim);
  }
  if (names.ffn_post_norm != nullptr && !HasStateNorms(names, kind)) {
    layer->ffn_post_norm =
        AddPostNorm(scope.Own("ffn_post_norm"), scope.Stored(names.ffn_post_norm));
  }
}

// The factors of the sum, 1 / sqrt(2), and of the projection, 1 / sqrt(hidden), are folded in.
void Planner::AddPerLayerEmbeddings() {
  const TensorNames& names = *spec_.names;
  const uint32_t width = spec_.per_layer_width;
  const auto n_layers = static_cast<uint32_t>(spec_.layer_kinds.size());
  const uint32_t cols = width * n_layers;
  const uint32_t stored = spec_.per_layer_rows, n_own = std::min(stored, spec_.vocab);
  SourcePart own =
      Whole(sources_.Take(WeightName(names.per_layer_embedding), {stored, cols}), n_own);
  std::vector<SourcePart> rows = {own};
  if (n_own < spec_.vocab) {
    own.rows = spec_.vocab - n_own;
    own.block_rows = 1;  // of stride 0: row 0, again and again
    rows.push_back(own);
  }
  plan_.per_layer_embedding =
      AddMatrix("per_layer_embedding", formats_.embedding, packs_tables(), rows, cols);
  SourcePart projection = Part(names.per_layer_projection, cols, spec_.hidden, false);
  projection.factor = static_cast<float>(1.0 / std::sqrt(static_cast<double>(spec_.hidden)));
  plan_.per_layer_projection =
      AddMatrix("per_layer_projection", formats_.weights, true, {projection}, spec_.hidden);
  plan_.per_layer_norm =
      AddVector("per_layer_norm", WeightName(names.per_layer_projection_norm), width, 0.0f);
  plan_.tensors[plan_.per_layer_norm].parts[0].factor = static_cast<float>(std::sqrt(0.5));
}

void Planner::AddPerLayer(const LayerScope& scope, LayerTensors* layer) {
  const TensorNames& names = *scope.names;
  const uint32_t width = spec_.per_layer_width, hidden = spec_.hidden;
  if (names.output_scale != nullptr) {
    layer->output_scale =
        AddVector(scope.Own("output_scale"), scope.Stored(names.output_scale), 1, 0.0f);
  }
  if (width == 0) return;
  layer->per_layer_gate =
      AddMatrix(scope.Own("per_layer_gate"), formats_.weights, true,
                {Part(scope.Stored(names.per_layer_gate), width, hidden, false)}, hidden);
  layer->per_layer_out =
      AddMatrix(scope.Own("per_layer_out"), formats_.weights, true,
                {OutPart(scope.Stored(names.per_layer_out), width, false)}, width);
  layer->per_layer_norm =
      AddVector(scope.Own("per_layer_norm"), WeightName(scope.Stored(names.per_layer_norm)), hidden,
                spec_.norm_offset);
}

SourcePart Planner::Part(const std::string& base, uint32_t rows, uint32_t cols, bool bias) {
  const bool is_transposed = spec_.is_transposed && !sources_.IsDecoded(WeightName(base));
  const std::vector<uint64_t> by_rows = {rows, cols}, by_cols = {cols, rows};
  SourcePart part;
  part.weight = sources_.Take(WeightName(base), is_transposed ? by_cols : by_rows);
  part.bias = bias ? sources_.Take(base + ".bias", {rows}) : nullptr;
  part.rows = rows;
  part.transposed_rows = is_transposed ? rows : 0;
  return part;
}

SourcePart Planner::OutPart(const std::string& base, uint32_t cols, bool bias, float factor) {
  SourcePart part = Part(base, hidden_, cols, bias);
  const bool has_post_norm = spec_.names->attention_post_norm != nullptr;
  part.factor = has_post_norm ? factor : spec_.residual_factor * factor;
  return part;
}

std::vector<SourcePart> Planner::QkvParts(const LayerScope& scope, const LayerKindSpec& kind) {
  const TensorNames& names = *scope.names;
  const uint32_t q_rows = kind.n_heads * kind.head_dim;
  const uint32_t kv_rows = kind.n_kv_heads * kind.head_dim;
  const uint32_t hidden = hidden_;
  const bool bias = kind.has_qkv_bias;
  if (SharesKv(scope)) {
    // Checkpoints may keep the unused tensors.
    for (const char* unused : {names.k, names.v, names.k_norm}) {
      sources_.Ignore(WeightName(scope.Stored(unused)));
      sources_.Ignore(scope.Stored(unused) + ".bias");
    }
    return {Part(scope.Stored(names.q), q_rows, hidden, bias)};
  }
  SourcePart q, k, v;
  if (names.qkv == nullptr) {
    const bool has_gate = kind.has_attention_gate && names.attention_gate == nullptr;
    q = Part(scope.Stored(names.q), (has_gate ? 2 : 1) * q_rows, hidden, bias);
    if (has_gate) q = HalfOfHeads(q, kind, 0);
    k = Part(scope.Stored(names.k), kv_rows, hidden, bias && kind.has_k_bias);
    v = kind.k_is_v ? k : Part(scope.Stored(names.v), kv_rows, hidden, bias);
    q.input_factor = k.input_factor = v.input_factor = spec_.factors.attention_in;
    k.factor = spec_.factors.k;
  } else {
    const SourcePart whole = Part(scope.Stored(names.qkv), q_rows + 2 * kv_rows, hidden, bias);
    if (spec_.qkv_order == QkvOrder::kBlocks && !spec_.rotates_neighbours) return {whole};
    SplitFused(whole, kind, &q, &k, &v);
  }
  std::vector<SourcePart> parts;
  if (spec_.rotates_backwards) {
    AppendHalvesExchanged(q, kind.n_heads, kind.head_dim, &parts);
    AppendHalvesExchanged(k, kind.n_kv_heads, kind.head_dim, &parts);
    parts.push_back(v);
    return parts;
  }
  const bool moves_pairs = spec_.rotates_neighbours || spec_.rotates_halves;
  const bool has_rope = kind.rope != kNoRope;
  if (!moves_pairs || !(has_rope || spec_.pairs_all_heads)) return {q, k, v};
  const uint32_t rotary_dim =
      spec_.rotates_halves || !has_rope ? kind.head_dim : spec_.ropes[kind.rope].rotary_dim;
  const uint32_t block = spec_.rotates_halves ? kind.head_dim / 4 : 1;
  AppendPairsApart(q, kind.n_heads, kind.head_dim, rotary_dim, block, &parts);
  AppendPairsApart(k, kind.n_kv_heads, kind.head_dim, rotary_dim, block, &parts);
  parts.push_back(v);
  return parts;
}

// Finds the rows of q, k and v in a fused tensor.
void Planner::SplitFused(const SourcePart& whole, const LayerKindSpec& kind, SourcePart* q,
                         SourcePart* k, SourcePart* v) const {
  const uint32_t dim = kind.head_dim;
  const uint32_t q_rows = kind.n_heads * dim, kv_rows = kind.n_kv_heads * dim;
  const auto rows = [&](uint32_t n, uint32_t first, uint32_t block, uint32_t stride) {
    SourcePart part = whole;
    part.rows = n;
    part.first_row = first;
    part.block_rows = block;
    part.block_stride = stride;
    return part;
  };
  switch (spec_.qkv_order) {
    case QkvOrder::kBlocks:
      *q = rows(q_rows, 0, 0, 0);
      *k = rows(kv_rows, q_rows, 0, 0);
      *v = rows(kv_rows, q_rows + kv_rows, 0, 0);
      return;
    case QkvOrder::kByHead: {
      const uint32_t group_rows = kind.n_heads / kind.n_kv_heads * dim;
      const uint32_t stride = group_rows + 2 * dim;
      *q = rows(q_rows, 0, group_rows, stride);
      *k = rows(kv_rows, group_rows, dim, stride);
      *v = rows(kv_rows, group_rows + dim, dim, stride);
      return;
    }
    case QkvOrder::kByShard: {
      constexpr uint32_t kShards = 4;
      if (kind.n_heads % kShards != 0) {
        Fail("%s: %u heads are not a multiple of %u", spec_.architecture.c_str(), kind.n_heads,
             kShards);
      }
      const uint32_t block = q_rows / kShards;
      *q = rows(q_rows, 0, block, 3 * block);
      *v = rows(q_rows, block, block, 3 * block);
      *k = rows(q_rows, 2 * block, block, 3 * block);
      return;
    }
  }
}

std::vector<SourcePart> Planner::UpParts(const LayerScope& scope, const LayerKindSpec& kind) {
  const TensorNames& names = *scope.names;
  const uint32_t ffn = kind.ffn_dim, hidden = hidden_;
  if (names.gate_up != nullptr) {
    SourcePart gate = Part(scope.Stored(names.gate_up), 2 * ffn, hidden, kind.has_mlp_bias);
    if (!spec_.up_is_first) return {gate};
    SourcePart up = gate;
    gate.first_row = ffn;
    gate.rows = up.rows = ffn;
    return {gate, up};
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
  *weight = spec_.has_norm_weights ? AddVector(name, WeightName(source), count, spec_.norm_offset)
                                   : AddConstant(name, count, 1.0f);
  if (kind != NormKind::kLayer) return;
  *bias = spec_.has_norm_biases ? AddVector(name + "_bias", source + ".bias", count, 0.0f)
                                : AddConstant(name + "_bias", count, 0.0f);
}

uint32_t Planner::AddPostNorm(const std::string& name, const std::string& source) {
  const uint32_t index = AddVector(name, WeightName(source), hidden_, spec_.norm_offset);
  plan_.tensors[index].factor = spec_.residual_factor;
  return index;
}

uint32_t Planner::AddVector(const std::string& name, const std::string& source, uint32_t count,
                            float offset) {
  const uint32_t index = AddConstant(name, count, offset);
  plan_.tensors[index].parts = {Whole(sources_.Take(source, {count}), 1)};
  return index;
}

uint32_t Planner::AddConstant(const std::string& name, uint32_t count, float value) {
  PlannedTensor tensor;
  tensor.name = name;
  tensor.is_vector = true;
  tensor.offset = value;
  tensor.rows = 1;
  tensor.cols = count;
  plan_.tensors.push_back(std::move(tensor));
  return static_cast<uint32_t>(plan_.tensors.size() - 1);
}

// Takes [1] or [], as each number is stored.
void Planner::AddActParameters(const LayerScope& scope, LayerTensors* layer) {
  layer->act_parameters = AddConstant(scope.Own("act_parameters"), kXieluParameters, 0.0f);
  for (uint32_t i = 0; i < kXieluParameters; ++i) {
    const std::string name = scope.Stored(scope.names->act_parameters[i]);
    const std::vector<uint64_t> shape(sources_.Has(name, {1}) ? 1 : 0, 1);
    plan_.tensors[layer->act_parameters].parts.push_back(Whole(sources_.Take(name, shape), 1));
  }
}

// One row per distance up to the longest context, for all layers.
void Planner::AddAlibi() {
  PlannedTensor tensor;
  tensor.name = "alibi";
  tensor.rows = spec_.max_context;
  tensor.cols = static_cast<uint32_t>(spec_.alibi_slopes.size());
  tensor.slopes = spec_.alibi_slopes;
  plan_.tensors.push_back(std::move(tensor));
  relative_position_bias_ = static_cast<uint32_t>(plan_.tensors.size() - 1);
}

uint32_t Planner::AddMatrix(const std::string& name, DType dtype, bool is_packed,
                            std::vector<SourcePart> parts, uint32_t cols) {
  PlannedTensor tensor;
  tensor.name = name;
  const auto exception = formats_.exceptions.find(name);
  tensor.dtype = dtype = exception == formats_.exceptions.end() ? dtype : exception->second;
  tensor.is_packed = is_packed;
  tensor.layout = tensor.LayoutOf(dtype, *formats_.target);
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

WeightLayout PlannedTensor::LayoutOf(DType of, const PackTarget& target) const {
  const bool is_code = FindCodeType(of) != nullptr;  // they have no other layout
  return is_packed || is_code ? TargetLayout(target, of) : WeightLayout{};
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
