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
  constexpr const char* kSuffix = ".rotary_emb.inv_freq";
  const size_t length = std::char_traits<char>::length(kSuffix);
  return name.size() > length && name.compare(name.size() - length, length, kSuffix) == 0;
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
    CollectMissing();
    const Checkpoint::Entry* embedding =
        Take(WeightName(names.embedding), {spec_.vocab, spec_.hidden});
    const Checkpoint::Entry* head = HeadSource(embedding);
    if (embedding == nullptr) embedding = head;
    const bool is_shared = head == embedding && formats_.embedding == formats_.head;
    // A table that is only looked up stays row by row; one that is multiplied with too gets the
    // kernel's layout.
    plan_.embedding = AddMatrix("embedding", formats_.embedding, is_shared,
                                {{embedding, nullptr, spec_.vocab}}, spec_.hidden);
    for (uint32_t i = 0; i < spec_.layer_kinds.size(); ++i) {
      AddLayer(i, spec_.kinds[spec_.layer_kinds[i]]);
    }
    plan_.final_norm = AddVector("final_norm", names.final_norm, spec_.hidden);
    plan_.head = is_shared ? plan_.embedding
                           : AddMatrix("head", formats_.head, true, {{head, nullptr, spec_.vocab}},
                                       spec_.hidden);
    RefuseExtra();
    return std::move(plan_);
  }

 private:
  static std::string WeightName(const std::string& base) { return base + ".weight"; }

  // One sentence for all that is absent is worth more than the first of a hundred.
  void CollectMissing() {
    const TensorNames& names = *spec_.names;
    std::vector<std::string> missing;
    const auto need = [&](const std::string& name) {
      if (checkpoint_.Find(name) == nullptr) missing.push_back(name);
    };
    const bool has_head = checkpoint_.Find(WeightName(names.head)) != nullptr;
    if (!spec_.tied || !has_head) need(WeightName(names.embedding));
    if (!spec_.tied) need(WeightName(names.head));
    need(WeightName(names.final_norm));
    for (uint32_t i = 0; i < spec_.layer_kinds.size(); ++i) {
      const LayerKindSpec& kind = spec_.kinds[spec_.layer_kinds[i]];
      const auto need_linear = [&](const char* pattern, bool bias) {
        need(LayerName(pattern, i) + ".weight");
        if (bias) need(LayerName(pattern, i) + ".bias");
      };
      need_linear(names.attention_norm, false);
      for (const char* name : {names.q, names.k, names.v}) need_linear(name, kind.has_qkv_bias);
      if (kind.has_qk_norm) {
        need_linear(names.q_norm, false);
        need_linear(names.k_norm, false);
      }
      need_linear(names.attention_out, kind.has_attention_out_bias);
      need_linear(names.ffn_norm, false);
      for (const char* name : {names.gate, names.up, names.down}) {
        need_linear(name, kind.has_mlp_bias);
      }
    }
    if (missing.empty()) return;
    const bool only_head = missing.size() == 1 && missing[0] == WeightName(names.head);
    Fail("the checkpoint lacks %zu tensor%s that %s needs: %s%s", missing.size(),
         missing.size() == 1 ? "" : "s", spec_.architecture.c_str(), JoinNames(missing).c_str(),
         only_head ? " (tie_word_embeddings is false)" : "");
  }

  // The tensor, checked and counted as used; null when it is not there.
  const Checkpoint::Entry* Take(const std::string& name, const std::vector<uint64_t>& shape) {
    const Checkpoint::Entry* entry = checkpoint_.Find(name);
    if (entry == nullptr) return nullptr;
    const SourceTensor& tensor = *entry->tensor;
    if (tensor.shape != shape) {
      Fail("%s: tensor %s: expected shape %s, found %s", entry->file->path().c_str(), name.c_str(),
           ShapeText(shape).c_str(), ShapeText(tensor.shape).c_str());
    }
    if (!Checkpoint::IsFloat(tensor)) {
      Fail("%s: tensor %s: expected type F32, F16 or BF16, found %s", entry->file->path().c_str(),
           name.c_str(), tensor.dtype.c_str());
    }
    used_.insert(name);
    return entry;
  }

  // As transformers' tie_weights(): a tied head whose own tensor is there too is tied only if both
  // are equal.
  const Checkpoint::Entry* HeadSource(const Checkpoint::Entry* embedding) {
    const std::string name = WeightName(spec_.names->head);
    const Checkpoint::Entry* head = Take(name, {spec_.vocab, spec_.hidden});
    if (!spec_.tied || embedding == nullptr) return head;
    if (head == nullptr || SameValues(*embedding, *head)) return embedding;
    warnings_->push_back("tie_word_embeddings is true, but " + name +
                         " differs from the embedding: they are kept apart");
    return head;
  }

  void AddLayer(uint32_t i, const LayerKindSpec& kind) {
    const TensorNames& names = *spec_.names;
    const std::string prefix = "layers." + std::to_string(i) + ".";
    const auto part = [&](const char* pattern, uint32_t rows, uint32_t cols, bool bias) {
      const std::string base = LayerName(pattern, i);
      return SourcePart{Take(base + ".weight", {rows, cols}),
                        bias ? Take(base + ".bias", {rows}) : nullptr, rows};
    };
    const auto matrix = [&](const char* name, std::vector<SourcePart> parts, uint32_t cols) {
      return AddMatrix(prefix + name, formats_.weights, true, std::move(parts), cols);
    };
    const uint32_t q_rows = kind.n_heads * kind.head_dim;
    const uint32_t kv_rows = kind.n_kv_heads * kind.head_dim;
    const uint32_t hidden = spec_.hidden, ffn = kind.ffn_dim;

    LayerTensors layer;
    layer.attention_norm =
        AddVector(prefix + "attention_norm", LayerName(names.attention_norm, i), hidden);
    layer.qkv = matrix("qkv",
                       {part(names.q, q_rows, hidden, kind.has_qkv_bias),
                        part(names.k, kv_rows, hidden, kind.has_qkv_bias),
                        part(names.v, kv_rows, hidden, kind.has_qkv_bias)},
                       hidden);
    if (kind.has_qk_norm) {
      layer.q_norm = AddVector(prefix + "q_norm", LayerName(names.q_norm, i), kind.head_dim);
      layer.k_norm = AddVector(prefix + "k_norm", LayerName(names.k_norm, i), kind.head_dim);
    }
    layer.attention_out =
        matrix("attention_out",
               {part(names.attention_out, hidden, q_rows, kind.has_attention_out_bias)}, q_rows);
    layer.ffn_norm = AddVector(prefix + "ffn_norm", LayerName(names.ffn_norm, i), hidden);
    layer.gate_up = matrix("gate_up",
                           {part(names.gate, ffn, hidden, kind.has_mlp_bias),
                            part(names.up, ffn, hidden, kind.has_mlp_bias)},
                           hidden);
    layer.down = matrix("down", {part(names.down, hidden, ffn, kind.has_mlp_bias)}, ffn);
    plan_.layers.push_back(layer);
  }

  uint32_t AddVector(const std::string& name, const std::string& source, uint32_t count) {
    PlannedTensor tensor;
    tensor.name = name;
    tensor.is_vector = true;
    tensor.rows = 1;
    tensor.cols = count;
    tensor.parts = {{Take(WeightName(source), {count}), nullptr, 1}};
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
