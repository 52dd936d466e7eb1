#include "converter/tensors/find_mtp.h"

#include <algorithm>

#include "converter/base/error.h"
#include "converter/hf/config_reader.h"
#include "converter/tensors/planner.h"
#include "converter/tensors/tensor_sources.h"
#include "nlohmann/json.hpp"

namespace arn::convert {
namespace {

constexpr const char* kLayersKey = "mtp_num_hidden_layers";
constexpr const char* kEmbeddingsKey = "mtp_use_dedicated_embeddings";

const Checkpoint::Entry* FindWeight(const Checkpoint& checkpoint, const char* name,
                                    uint32_t layer) {
  return name == nullptr ? nullptr : checkpoint.Find(WeightName(LayerName(name, layer)));
}

// True if a tensor that the head shares with the decoder is stored again with other values.
bool Differs(const Checkpoint::Entry* copy, const Checkpoint& checkpoint, const char* name) {
  if (copy == nullptr || name == nullptr) return false;
  const Checkpoint::Entry* own = checkpoint.Find(WeightName(name));
  return own != nullptr && !SameValues(*copy, *own);
}

// Returns why the head is not one that a session runs; empty: it is.
std::string Reason(const nlohmann::json& config, const std::string& label, const DecoderSpec& spec,
                   const Checkpoint& checkpoint, bool is_next_layer) {
  const TensorNames& names = *spec.names->mtp;
  if (is_next_layer) {
    if (spec.n_extra_layers != 1) return Format("it has %u layers", spec.n_extra_layers);
    const auto layer = static_cast<uint32_t>(spec.layer_kinds.size());
    for (const auto& [copy, own] : {std::pair(names.mtp_embedding_copy, spec.names->embedding),
                                    std::pair(names.mtp_head_copy, spec.names->head)}) {
      if (!Differs(FindWeight(checkpoint, copy, layer), checkpoint, own)) continue;
      return Format("%s is not the model's", WeightName(LayerName(copy, layer)).c_str());
    }
    return "";
  }
  ConfigReader reader(config, label);
  const int64_t n_layers = reader.Int(kLayersKey).value_or(1);
  if (n_layers != 1) return Format("%s is %lld", kLayersKey, static_cast<long long>(n_layers));
  if (reader.Bool(kEmbeddingsKey, false)) return Format("%s is true", kEmbeddingsKey);
  return "";
}

}  // namespace

std::shared_ptr<const DecoderSpec> FindMtp(const nlohmann::json& config, const std::string& label,
                                           const DecoderSpec& spec, const Checkpoint& checkpoint,
                                           std::vector<std::string>* warnings) {
  const TensorNames* names = spec.names->mtp;
  if (names == nullptr) return nullptr;
  const bool is_next_layer = IsOfEachLayer(names->mtp_fc);
  const auto first_layer = is_next_layer ? static_cast<uint32_t>(spec.layer_kinds.size()) : 0;
  if (FindWeight(checkpoint, names->mtp_fc, first_layer) == nullptr) return nullptr;
  std::string reason = Reason(config, label, spec, checkpoint, is_next_layer);
  const bool has_experts = FindWeight(checkpoint, names->router, first_layer) != nullptr;
  const auto kind =
      std::find_if(spec.kinds.begin(), spec.kinds.end(), [&](const LayerKindSpec& candidate) {
        return candidate.has_attention() && !candidate.has_state() &&
               (candidate.n_experts != 0) == has_experts;
      });
  if (reason.empty() && kind == spec.kinds.end()) {
    reason = Format("no layer of the decoder has attention %s experts",
                    has_experts ? "with" : "without");
  }
  if (!reason.empty()) {
    warnings->push_back(
        Format("%s: the multi-token prediction head: %s", label.c_str(), reason.c_str()));
    return nullptr;
  }
  auto head = std::make_shared<DecoderSpec>(spec);
  head->names = names;
  head->kinds = {*kind};
  head->layer_kinds = {0};
  head->first_layer = first_layer;
  head->own_rows_before_norm = is_next_layer && !names->mtp_goes_on_normed;
  head->kv_layers.clear();
  head->n_extra_layers = 0;
  head->pooling = PoolingSpec();
  head->vision = VisionSpec();
  return head;
}

}  // namespace arn::convert
