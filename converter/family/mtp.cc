#include "converter/family/mtp.h"

#include <algorithm>

#include "converter/base/error.h"
#include "converter/hf/config_reader.h"
#include "nlohmann/json.hpp"

namespace arn::convert {
namespace {

constexpr const char* kLayersKey = "mtp_num_hidden_layers";
constexpr const char* kEmbeddingsKey = "mtp_use_dedicated_embeddings";

bool HasTensor(const Checkpoint& checkpoint, std::string name) {
  const size_t at = name.find("{}");
  if (at != std::string::npos) name.replace(at, 2, "0");
  return checkpoint.Find(name + ".weight") != nullptr;
}

// Returns why the head is not one that a session runs; empty: it is.
std::string Reason(const nlohmann::json& config, const std::string& label) {
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
  if (names == nullptr || !HasTensor(checkpoint, names->mtp_fc)) return nullptr;
  std::string reason = Reason(config, label);
  const bool has_experts = HasTensor(checkpoint, names->router);
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
  head->kv_layers.clear();
  head->n_extra_layers = 0;
  head->pooling = PoolingSpec();
  head->vision = VisionSpec();
  return head;
}

}  // namespace arn::convert
