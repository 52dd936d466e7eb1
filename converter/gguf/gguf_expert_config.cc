#include "converter/gguf/gguf_expert_config.h"

#include <algorithm>
#include <string>
#include <vector>

#include "converter/base/error.h"
#include "converter/gguf/gguf_keys.h"

namespace arn::convert {
namespace {

// Adds the keys of experts to a config.
class ExpertConfigMaker {
 public:
  ExpertConfigMaker(const GgufArchitecture& row, const Family& family, const GgufFacts& facts,
                    uint32_t n_layers, ConfigReader* metadata, nlohmann::json* config)
      : row_(row),
        family_(family),
        facts_(facts),
        n_layers_(n_layers),
        keys_(row.name, metadata),
        config_(config) {}

  void Make() {
    AddExperts();
    AddSharedExpert();
  }

 private:
  // Returns which layers have experts.
  std::vector<bool> SparseLayers() const {
    std::vector<bool> sparse(n_layers_);
    for (uint32_t i = 0; i < n_layers_; ++i) {
      sparse[i] = facts_.tensors.count(Format("blk.%u.ffn_gate_inp.weight", i)) != 0;
    }
    return sparse;
  }

  // Says which layers have experts, in the way of the family.
  void AddSparseLayers() {
    const std::vector<bool> sparse = SparseLayers();
    const auto first = std::find(sparse.begin(), sparse.end(), true);
    const auto n_dense = static_cast<uint32_t>(first - sparse.begin());
    keys_.MarkRead("leading_dense_block_count");  // follows from the tensors
    if (family_.dense_layers_key != nullptr) (*config_)[family_.dense_layers_key] = n_dense;
    if (family_.experts == ExpertRule::kByType) {
      nlohmann::json types = nlohmann::json::array();
      for (const bool is_sparse : sparse) types.push_back(is_sparse ? "sparse" : "dense");
      (*config_)["mlp_layer_types"] = std::move(types);
    }
    if (family_.experts == ExpertRule::kSparseStep) {
      nlohmann::json dense = nlohmann::json::array();
      for (uint32_t i = 0; i < n_layers_; ++i) {
        if (!sparse[i]) dense.push_back(i);
      }
      (*config_)["mlp_only_layers"] = std::move(dense);
    }
    if (family_.experts != ExpertRule::kInterval) return;
    const auto last = std::find(sparse.rbegin(), sparse.rend(), true);
    (*config_)["moe_layer_start_index"] = n_dense;
    (*config_)["moe_layer_end_index"] = sparse.rend() - last - 1;
    (*config_)["moe_layer_interval"] = keys_.Count("interleave_moe_layer_step").value_or(1);
  }

  void AddExperts() {
    if (family_.experts == ExpertRule::kNone) {
      // Files with latent attention have these keys even if no layer has experts.
      if (family_.latent == nullptr) return;
      keys_.MarkRead("leading_dense_block_count");
      keys_.MarkRead("expert_feed_forward_length");
      return;
    }
    AddSparseLayers();
    const char* count = family_.experts_key;
    (*config_)[count] = keys_.Required("expert_count");
    (*config_)[family_.experts_used_key] = keys_.Required("expert_used_count");
    const uint32_t groups = keys_.Count("expert_group_count").value_or(1);
    const uint32_t groups_used = keys_.Count("expert_group_used_count").value_or(1);
    if (family_.has_router_groups) {
      (*config_)["n_group"] = groups;
      (*config_)["topk_group"] = groups_used;
    } else if (groups != groups_used) {
      keys_.Fail("expert_group_count", "expert_group_used_count");
    }
    const std::optional<uint32_t> width = keys_.Count("expert_feed_forward_length");
    if (width) (*config_)[family_.expert_ffn_key] = *width;
    if (family_.experts == ExpertRule::kListed) {
      const std::optional<uint32_t> every = keys_.Count("interleave_moe_layer_step");
      if (every) (*config_)["interleave_moe_layer_step"] = *every;
    }
    if (family_.qk_norm == QkNorm::kPlainOfRotated) {
      // Only one published model has no QK norm: the one with 128 experts.
      (*config_)["use_qk_norm"] = (*config_)[count] != 128;
    }
    AddRouting();
  }

  // How the weights of experts follow from their logits, in the words of families that say it.
  const char* SelectionName() {
    constexpr const char* kKey = "expert_gating_func";
    const uint32_t gating = keys_.Required(kKey);
    if (gating != 1 && gating != 2) keys_.Fail(kKey, "1 (softmax) or 2 (sigmoid)");
    return gating == 1 ? "softmax" : "sigmoid";
  }

  void AddRouting() {
    const char* norm_key = family_.norm_topk_prob_key;
    const bool is_softmax = family_.layer.route_score != RouteScore::kSigmoid;
    const bool norms = keys_.Bool("expert_weights_norm", row_.norms_topk);
    const bool is_given = norm_key != nullptr && norm_key[0] != '\0';
    if (is_given) (*config_)[norm_key] = norms;
    if (const char* key = family_.route_score_key) {
      (*config_)[key] = SelectionName();
      return;
    }
    const bool always = norm_key == nullptr && (is_softmax || family_.always_norms_topk);
    if (!is_given && norms != always && keys_.Has("expert_weights_norm")) {
      keys_.Fail("expert_weights_norm", always ? "true" : "false");
    }
    constexpr int64_t kSoftmax = 1, kSigmoid = 2, kSoftmaxOfChosen = 3;
    const int64_t usual = is_softmax ? kSoftmax : kSigmoid;
    const int64_t gating = keys_.Count("expert_gating_func").value_or(usual);
    // Softmax weights renormalised over the top-k equal a softmax over the top-k.
    const bool is_same = is_softmax && norms && gating == kSoftmaxOfChosen;
    if (gating != usual && !is_same) {
      keys_.Fail("expert_gating_func", is_softmax ? "1 (softmax)" : "2 (sigmoid)");
    }
    const double scale = keys_.Number("expert_weights_scale").value_or(1);
    if (family_.has_routed_factor) {
      (*config_)[family_.routed_factor_key] = scale == 0 ? 1.0 : scale;
    } else if (scale != 0 && scale != 1) {
      keys_.Fail("expert_weights_scale", "1");
    }
  }

  void AddSharedExpert() {
    if (const char* key = family_.shared_sum_key) (*config_)[key] = "average";
    const std::optional<uint32_t> count = keys_.Count("expert_shared_count");
    const std::optional<uint32_t> width = keys_.Count("expert_shared_feed_forward_length");
    switch (family_.shared_expert) {
      case SharedExpert::kCount: (*config_)[family_.shared_expert_key] = count.value_or(0); break;
      case SharedExpert::kWidth: (*config_)[family_.shared_expert_key] = width.value_or(0); break;
      case SharedExpert::kOne:
        if (count.value_or(1) != 1) keys_.Fail("expert_shared_count", "1");
        break;
      case SharedExpert::kNone:
        if (count) keys_.Fail("expert_shared_count", "0");
        // Granite 4 without Mamba layers calls its feed-forward block so.
        if (width && (*config_)[family_.keys.ffn] != *width) {
          keys_.Fail("expert_shared_feed_forward_length", "0");
        }
        break;
      case SharedExpert::kFeedForward: break;
    }
  }

  const GgufArchitecture& row_;
  const Family& family_;
  const GgufFacts& facts_;
  const uint32_t n_layers_;
  GgufKeys keys_;
  nlohmann::json* config_;
};

}  // namespace

void AddExpertConfig(const GgufArchitecture& row, const Family& family, const GgufFacts& facts,
                     uint32_t n_layers, ConfigReader* metadata, nlohmann::json* config) {
  ExpertConfigMaker(row, family, facts, n_layers, metadata, config).Make();
}

}  // namespace arn::convert
