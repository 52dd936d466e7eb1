#include "converter/tensor_plan.h"

#include <algorithm>
#include <set>

#include "converter/error.h"
#include "platform/base/arith.h"

namespace arn::convert {
namespace {

// "model.layers.{}.mlp" and 3 give "model.layers.3.mlp".
std::string LayerName(const char* pattern, uint32_t layer) {
  std::string name = pattern;
  const size_t at = name.find("{}");
  if (at != std::string::npos) name.replace(at, 2, std::to_string(layer));
  return name;
}

// What checkpoints carry beside their parameters: tables that are computed from the config.
bool IsDerived(const std::string& name) {
  constexpr const char* kSuffixes[] = {".rotary_emb.inv_freq", ".attn.bias", ".attn.masked_bias",
                                       ".attention.bias", ".attention.masked_bias"};
  return std::any_of(std::begin(kSuffixes), std::end(kSuffixes), [&](const std::string& suffix) {
    return name.size() > suffix.size() &&
           name.compare(name.size() - suffix.size(), suffix.size(), suffix) == 0;
  });
}

bool SameValues(const Checkpoint::Entry& a, const Checkpoint::Entry& b) {
  if (a.tensor->shape != b.tensor->shape) return false;
  constexpr uint64_t kSlab = 1 << 20;
  std::vector<float> left(kSlab), right(kSlab);
  const uint64_t count = a.tensor->elements();
  for (uint64_t at = 0; at < count; at += kSlab) {
    const uint64_t n = std::min(kSlab, count - at);
    Checkpoint::ReadFloats(a, at, n, left.data());
    Checkpoint::ReadFloats(b, at, n, right.data());
    if (!std::equal(left.begin(), left.begin() + static_cast<ptrdiff_t>(n), right.begin())) {
      return false;
    }
  }
  return true;
}

class Planner {
 public:
  Planner(const DecoderSpec& spec, const Checkpoint& checkpoint, const Formats& formats,
          std::vector<std::string>* warnings)
      : spec_(spec), checkpoint_(checkpoint), formats_(formats), warnings_(warnings) {}

  TensorPlan Make() {
    const TensorNames& names = *spec_.names;
    const Checkpoint::Entry* embedding = EmbeddingSource();
    const Checkpoint::Entry* head = HeadSource(embedding);
    const bool is_shared = head == embedding && formats_.embedding == formats_.head;
    // A table that is only looked up stays row by row; one that is multiplied with too gets the
    // kernel's layout.
    plan_.embedding = AddMatrix("embedding", formats_.embedding, is_shared,
                                {Whole(embedding, spec_.vocab)}, spec_.hidden);
    if (names.positions != nullptr) {
      const Checkpoint::Entry* positions =
          Take(WeightName(names.positions), {spec_.max_context, spec_.hidden});
      plan_.positions = AddMatrix("positions", DType::kF32, false,
                                  {Whole(positions, spec_.max_context)}, spec_.hidden);
    }
    for (uint32_t i = 0; i < spec_.layer_kinds.size(); ++i) {
      AddLayer(i, spec_.kinds[spec_.layer_kinds[i]]);
    }
    AddNorm("final_norm", names.final_norm, spec_.final_norm_kind, spec_.hidden, &plan_.final_norm,
            &plan_.final_norm_bias);
    plan_.head = is_shared ? plan_.embedding
                           : AddMatrix("head", formats_.head, true, {Whole(head, spec_.vocab)},
                                       spec_.hidden);
    FailMissing();
    RefuseExtra();
    return std::move(plan_);
  }

 private:
  static std::string WeightName(const std::string& base) { return base + ".weight"; }
  static SourcePart Whole(const Checkpoint::Entry* entry, uint32_t rows) {
    SourcePart part;
    part.weight = entry;
    part.rows = rows;
    return part;
  }

  // The name under which the checkpoint has it: with the decoder's prefix or without.
  std::string StoredName(const std::string& name) const {
    const std::string prefix = spec_.names->prefix;
    if (checkpoint_.Find(name) != nullptr || name.compare(0, prefix.size(), prefix) != 0) {
      return name;
    }
    const std::string bare = name.substr(prefix.size());
    return checkpoint_.Find(bare) != nullptr ? bare : name;
  }

  // The tensor, checked and counted as used; null, and noted, when it is not there.
  const Checkpoint::Entry* Take(const std::string& name, const std::vector<uint64_t>& shape) {
    const std::string stored = StoredName(name);
    const Checkpoint::Entry* entry = checkpoint_.Find(stored);
    if (entry == nullptr) {
      missing_.push_back(name);
      return nullptr;
    }
    const SourceTensor& tensor = *entry->tensor;
    if (tensor.shape != shape) {
      Fail("%s: tensor %s: expected shape %s, found %s", entry->file->path().c_str(),
           stored.c_str(), ShapeText(shape).c_str(), ShapeText(tensor.shape).c_str());
    }
    if (!Checkpoint::IsFloat(tensor)) {
      Fail("%s: tensor %s: expected type F32, F16 or BF16, found %s", entry->file->path().c_str(),
           stored.c_str(), tensor.dtype.c_str());
    }
    used_.insert(stored);
    return entry;
  }

  bool Has(const std::string& name) const { return checkpoint_.Find(StoredName(name)) != nullptr; }

  // A tied pair may be stored under either name.
  const Checkpoint::Entry* EmbeddingSource() {
    const std::string name = WeightName(spec_.names->embedding);
    const std::string head = WeightName(spec_.names->head);
    return Take(spec_.tied && !Has(name) && Has(head) ? head : name, {spec_.vocab, spec_.hidden});
  }

  // As transformers' tie_weights(): a tied head whose own tensor is there too is tied only if both
  // are equal.
  const Checkpoint::Entry* HeadSource(const Checkpoint::Entry* embedding) {
    const std::string name = WeightName(spec_.names->head);
    if (spec_.tied && !Has(name)) return embedding;
    const Checkpoint::Entry* head = Take(name, {spec_.vocab, spec_.hidden});
    if (!spec_.tied || embedding == nullptr) return head;
    if (head == embedding || SameValues(*embedding, *head)) return embedding;
    warnings_->push_back("tie_word_embeddings is true, but " + name +
                         " differs from the embedding: they are kept apart");
    return head;
  }

  void AddLayer(uint32_t i, const LayerKindSpec& kind) {
    const TensorNames& names = *spec_.names;
    const std::string prefix = "layers." + std::to_string(i) + ".";
    const uint32_t hidden = spec_.hidden, q_rows = kind.n_heads * kind.head_dim;
    const auto vector = [&](const char* name, const char* pattern, uint32_t count) {
      if (pattern == nullptr) return kNoTensor;
      return AddVector(prefix + name, WeightName(LayerName(pattern, i)), count, spec_.norm_offset);
    };
    const auto norm = [&](const char* name, const char* pattern, uint32_t* weight, uint32_t* bias) {
      if (pattern == nullptr) return;
      AddNorm(prefix + name, LayerName(pattern, i), kind.norm, hidden, weight, bias);
    };

    LayerTensors layer;
    norm("attention_norm", names.attention_norm, &layer.attention_norm, &layer.attention_norm_bias);
    layer.qkv = AddMatrix(prefix + "qkv", formats_.weights, true, QkvParts(i, kind), hidden);
    if (kind.has_qk_norm) {
      const uint32_t heads = kind.qk_norm_spans_heads ? kind.n_heads : 1;
      const uint32_t kv_heads = kind.qk_norm_spans_heads ? kind.n_kv_heads : 1;
      layer.q_norm = vector("q_norm", names.q_norm, heads * kind.head_dim);
      layer.k_norm = vector("k_norm", names.k_norm, kv_heads * kind.head_dim);
    }
    layer.attention_out = AddMatrix(
        prefix + "attention_out", formats_.weights, true,
        {OutPart(LayerName(names.attention_out, i), q_rows, kind.has_attention_out_bias)}, q_rows);
    layer.attention_post_norm = vector("attention_post_norm", names.attention_post_norm, hidden);
    norm("ffn_norm", names.ffn_norm, &layer.ffn_norm, &layer.ffn_norm_bias);
    if (kind.n_experts != 0) {
      AddExperts(i, kind, prefix, &layer);
    } else {
      layer.gate_up =
          AddMatrix(prefix + "gate_up", formats_.weights, true, UpParts(i, kind), hidden);
      layer.down = AddMatrix(prefix + "down", formats_.weights, true,
                             {OutPart(LayerName(names.down, i), kind.ffn_dim, kind.has_mlp_bias)},
                             kind.ffn_dim);
    }
    layer.ffn_post_norm = vector("ffn_post_norm", names.ffn_post_norm, hidden);
    plan_.layers.push_back(layer);
  }

  // The router stays f32: its rounding decides between experts.
  void AddExperts(uint32_t i, const LayerKindSpec& kind, const std::string& prefix,
                  LayerTensors* layer) {
    const TensorNames& names = *spec_.names;
    const uint32_t hidden = spec_.hidden, ffn = kind.ffn_dim;
    layer->router =
        AddMatrix(prefix + "router", DType::kF32, true,
                  {Part(LayerName(names.router, i), kind.n_experts, hidden, false)}, hidden);
    for (uint32_t e = 0; e < kind.n_experts; ++e) {
      const auto name = [&](const char* pattern) {
        return LayerName(LayerName(pattern, i).c_str(), e);
      };
      const std::string expert = prefix + "experts." + std::to_string(e) + ".";
      const uint32_t gate_up =
          AddMatrix(expert + "gate_up", formats_.weights, true,
                    {Part(name(names.expert_gate), ffn, hidden, kind.has_mlp_bias),
                     Part(name(names.expert_up), ffn, hidden, kind.has_mlp_bias)},
                    hidden);
      if (e == 0) layer->experts = gate_up;
      AddMatrix(expert + "down", formats_.weights, true,
                {OutPart(name(names.expert_down), ffn, kind.has_mlp_bias)}, ffn);
    }
  }

  // All rows of one matrix of a layer.
  SourcePart Part(const std::string& base, uint32_t rows, uint32_t cols, bool bias) {
    SourcePart part;
    part.weight = Take(WeightName(base), spec_.is_transposed ? std::vector<uint64_t>{cols, rows}
                                                             : std::vector<uint64_t>{rows, cols});
    part.bias = bias ? Take(base + ".bias", {rows}) : nullptr;
    part.rows = rows;
    part.transposed_rows = spec_.is_transposed ? rows : 0;
    return part;
  }

  // A matrix whose result is added to the residual stream.
  SourcePart OutPart(const std::string& base, uint32_t cols, bool bias) {
    SourcePart part = Part(base, spec_.hidden, cols, bias);
    part.factor = spec_.residual_factor;
    return part;
  }

  std::vector<SourcePart> QkvParts(uint32_t i, const LayerKindSpec& kind) {
    const TensorNames& names = *spec_.names;
    const uint32_t q_rows = kind.n_heads * kind.head_dim;
    const uint32_t kv_rows = kind.n_kv_heads * kind.head_dim;
    const uint32_t hidden = spec_.hidden;
    const bool bias = kind.has_qkv_bias;
    if (names.qkv == nullptr) {
      return {Part(LayerName(names.q, i), q_rows, hidden, bias),
              Part(LayerName(names.k, i), kv_rows, hidden, bias),
              Part(LayerName(names.v, i), kv_rows, hidden, bias)};
    }
    const SourcePart whole = Part(LayerName(names.qkv, i), q_rows + 2 * kv_rows, hidden, bias);
    if (spec_.qkv_order == QkvOrder::kBlocks) return {whole};
    if (kind.n_heads != kind.n_kv_heads) {
      Fail("%s: q, k and v by head need as many kv heads as heads, found %u and %u",
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

  std::vector<SourcePart> UpParts(uint32_t i, const LayerKindSpec& kind) {
    const TensorNames& names = *spec_.names;
    const uint32_t ffn = kind.ffn_dim, hidden = spec_.hidden;
    if (names.gate_up != nullptr) {
      return {Part(LayerName(names.gate_up, i), 2 * ffn, hidden, kind.has_mlp_bias)};
    }
    std::vector<SourcePart> parts;
    if (kind.is_gated)
      parts.push_back(Part(LayerName(names.gate, i), ffn, hidden, kind.has_mlp_bias));
    parts.push_back(Part(LayerName(names.up, i), ffn, hidden, kind.has_mlp_bias));
    return parts;
  }

  // *bias is set for NormKind::kLayer.
  void AddNorm(const std::string& name, const std::string& source, NormKind kind, uint32_t count,
               uint32_t* weight, uint32_t* bias) {
    *weight = AddVector(name, WeightName(source), count, spec_.norm_offset);
    if (kind == NormKind::kLayer) *bias = AddVector(name + "_bias", source + ".bias", count, 0.0f);
  }

  uint32_t AddVector(const std::string& name, const std::string& source, uint32_t count,
                     float offset) {
    PlannedTensor tensor;
    tensor.name = name;
    tensor.is_vector = true;
    tensor.offset = offset;
    tensor.rows = 1;
    tensor.cols = count;
    tensor.parts = {Whole(Take(source, {count}), 1)};
    plan_.tensors.push_back(std::move(tensor));
    return static_cast<uint32_t>(plan_.tensors.size() - 1);
  }

  uint32_t AddMatrix(const std::string& name, DType dtype, bool is_multiplied,
                     std::vector<SourcePart> parts, uint32_t cols) {
    PlannedTensor tensor;
    tensor.name = name;
    tensor.dtype = dtype;
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

  // One sentence for all that is absent is worth more than the first of a hundred.
  void FailMissing() const {
    if (missing_.empty()) return;
    const bool only_head = missing_.size() == 1 && missing_[0] == WeightName(spec_.names->head);
    Fail("the checkpoint lacks %zu tensor%s that %s needs: %s%s", missing_.size(),
         missing_.size() == 1 ? "" : "s", spec_.architecture.c_str(), JoinNames(missing_).c_str(),
         only_head ? " (tie_word_embeddings is false)" : "");
  }

  void RefuseExtra() const {
    std::vector<std::string> extra;
    for (const auto& [name, entry] : checkpoint_.entries()) {
      if (used_.count(name) == 0 && !IsDerived(name)) extra.push_back(name);
    }
    if (extra.empty()) return;
    Fail("the checkpoint has %zu tensor%s that %s does not account for: %s", extra.size(),
         extra.size() == 1 ? "" : "s", spec_.architecture.c_str(), JoinNames(extra).c_str());
  }

  const DecoderSpec& spec_;
  const Checkpoint& checkpoint_;
  const Formats& formats_;
  std::vector<std::string>* warnings_;
  std::set<std::string> used_;
  std::vector<std::string> missing_;
  TensorPlan plan_;
};

}  // namespace

bool PlannedTensor::has_bias() const {
  return std::any_of(parts.begin(), parts.end(),
                     [](const SourcePart& part) { return part.bias != nullptr; });
}

TensorPlan MakeTensorPlan(const DecoderSpec& spec, const Checkpoint& checkpoint,
                          const Formats& formats, std::vector<std::string>* warnings) {
  return Planner(spec, checkpoint, formats, warnings).Make();
}

}  // namespace arn::convert
