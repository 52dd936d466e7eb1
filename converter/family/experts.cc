#include "converter/family/experts.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "converter/base/error.h"
#include "nlohmann/json.hpp"

namespace arn::convert {
namespace {

// Reads n_group and topk_group. One group, or all of them, is no limit.
void ReadRouterGroups(const Family& family, ConfigReader* config, LayerKindSpec* kind) {
  const uint32_t n = config->Count("n_group").value_or(family.default_router_groups);
  const uint32_t used = config->Count("topk_group").value_or(family.default_router_groups_used);
  const uint32_t experts = n == 0 ? 0 : kind->n_experts / n;
  if (n == 0 || n > kMaxRouterGroups || kind->n_experts % n != 0 || experts < 2) {
    config->FailKey("n_group", Format("groups of two or more of the %u experts, %u at most",
                                      kind->n_experts, kMaxRouterGroups)
                                   .c_str());
  }
  if (used == 0 || used > n || kind->n_experts_used > used * experts) {
    config->FailKey(
        "topk_group",
        Format("groups with %u experts or more, of %u groups", kind->n_experts_used, n).c_str());
  }
  if (used == n) return;
  kind->router_groups = n;
  kind->router_groups_used = used;
}

// Reads how experts are chosen and weighed.
void ReadRouting(const Family& family, ConfigReader* config, LayerKindSpec* kind) {
  if (kind->route_score == RouteScore::kSparseMixer) {
    if (kind->n_experts_used != 2) config->FailKey(family.experts_used_key, "2");
    const double jitter = config->Number("router_jitter_noise").value_or(0.01);
    if (!(jitter >= 0 && jitter < 1e9)) {
      config->FailKey("router_jitter_noise", "a number of at least 0");
    }
    kind->router_jitter = static_cast<float>(jitter);
  }
  if (family.has_topk_method && config->String("topk_method").value_or("greedy") != "greedy") {
    config->FailKey("topk_method", "greedy");
  }
  const char* norm_key = family.norm_topk_prob_key;
  if (const char* key = family.route_score_key) {
    const std::string score = config->String(key).value_or("softmax");
    if (score != "softmax" && score != "sigmoid") config->FailKey(key, "softmax or sigmoid");
    kind->route_score = score == "softmax" ? RouteScore::kSoftmax : RouteScore::kSigmoid;
    // The softmax of the chosen experts alone: theirs of all, made to add up to 1.
    if (score == "softmax") config->MarkRead(norm_key);
    if (score == "softmax") norm_key = nullptr;
  }
  kind->norm_topk_prob = norm_key == nullptr
                             ? family.always_norms_topk || kind->route_score == RouteScore::kSoftmax
                             : norm_key[0] != '\0' && !config->IsNull(norm_key) &&
                                   config->Bool(norm_key, family.default_norm_topk_prob);
  if (const char* key = family.topk_least_key) {
    const double least = config->Number(key).value_or(family.default_topk_least);
    if (least < 0) config->FailKey(key, "a number of at least 0");
    kind->topk_least = static_cast<float>(least);
  }
  if (!kind->norm_topk_prob) kind->topk_epsilon = kind->topk_least = 0.0f;
  kind->has_router_correction =
      family.has_router_correction &&
      (family.correction_key == nullptr || config->Bool(family.correction_key, true));
  if (family.has_router_groups) ReadRouterGroups(family, config, kind);
  if (!family.has_routed_factor) return;
  const char* factor_key = family.routed_factor_key;
  const double factor = config->Number(factor_key).value_or(family.default_routed_factor);
  if (!std::isfinite(factor)) config->FailKey(factor_key, "a finite number");
  kind->routed_factor = static_cast<float>(factor);
}

// Returns the width of the shared expert, 0 for none. ffn: of a routed expert; dense: of a layer
// without experts.
uint32_t ReadSharedExpert(const Family& family, ConfigReader* config, uint32_t ffn,
                          uint32_t dense) {
  const char* key = family.shared_expert_key;
  if (family.shared_expert == SharedExpert::kNone) return 0;
  if (family.shared_expert == SharedExpert::kOne) return ffn;
  if (family.shared_expert == SharedExpert::kFeedForward) return dense;
  const int64_t value = config->Int(key).value_or(family.default_shared_expert);
  const uint64_t most = UINT32_MAX / 4;
  if (value < 0 || static_cast<uint64_t>(value) > most) config->FailKey(key, "a width or number");
  const uint64_t width =
      static_cast<uint64_t>(value) * (family.shared_expert == SharedExpert::kCount ? ffn : 1);
  if (width > most) config->FailKey(key, "a smaller number");
  return static_cast<uint32_t>(width);
}

// Reads a number, or a list of the same number for each layer.
std::optional<uint32_t> CountOrList(ConfigReader* config, const char* key) {
  const nlohmann::json* found = config->Find(key);
  if (found == nullptr || !found->is_array()) return config->Count(key);
  constexpr const char* kExpected = "a positive number, the same in all layers";
  if (found->empty() || !std::equal(found->begin() + 1, found->end(), found->begin()) ||
      !found->front().is_number_unsigned() || found->front() == 0 || found->front() > 65535) {
    config->FailKey(key, kExpected);
  }
  return found->front().get<uint32_t>();
}

// Reads a number that may have two names. fallback: 0 if the config must give it.
uint32_t CountOf(ConfigReader* config, const char* key, const char* alias, uint32_t fallback) {
  const std::optional<uint32_t> own = CountOrList(config, key);
  const std::optional<uint32_t> other = alias != nullptr ? config->Count(alias) : std::nullopt;
  if (own && other && *own != *other) {
    Fail("%s: %s is %u and %s %u: expected one of them, or the same", config->label().c_str(), key,
         *own, alias, *other);
  }
  const uint32_t count = own ? *own : other.value_or(fallback);
  return count != 0 ? count : config->RequiredCount(key);
}

}  // namespace

bool LacksExperts(const Family& family, ConfigReader* config) {
  if (!family.may_lack_experts) return false;
  if (config->IsNull(family.experts_key)) config->FailKey(family.experts_key, "a number");
  const int64_t most = family.experts == ExpertRule::kPeriod ? 1 : 0;
  if (config->Int(family.experts_key).value_or(family.default_experts) > most) return false;
  for (const char* key : {family.experts_used_key, family.expert_ffn_key, family.norm_topk_prob_key,
                          family.shared_expert_key, "decoder_sparse_step", "mlp_only_layers"}) {
    if (key != nullptr) config->MarkRead(key);
  }
  return true;
}

LayerKindSpec WithExperts(const Family& family, ConfigReader* config, LayerKindSpec kind) {
  kind.n_experts =
      CountOf(config, family.experts_key, family.experts_alias, family.default_experts);
  if (const char* copy = family.experts_copy_key) {
    if (config->Count(copy).value_or(kind.n_experts) < kind.n_experts) {
      config->FailKey(copy,
                      Format("%u, as %s, or more", kind.n_experts, family.experts_key).c_str());
    }
  }
  kind.n_experts_used = CountOf(config, family.experts_used_key, family.experts_used_alias,
                                family.default_experts_used);
  if (kind.n_experts_used > kind.n_experts || kind.n_experts > 65535) {
    Fail("%s: %s %u of %u experts", config->label().c_str(), family.experts_used_key,
         kind.n_experts_used, kind.n_experts);
  }
  const uint32_t dense = kind.ffn_dim;
  kind.ffn_dim = family.default_expert_ffn == 0
                     ? config->RequiredCount(family.expert_ffn_key)
                     : config->Count(family.expert_ffn_key).value_or(family.default_expert_ffn);
  kind.has_expert_bias = family.has_expert_bias;
  kind.has_router_bias = family.has_router_bias;
  ReadRouting(family, config, &kind);
  kind.shared_ffn_dim = ReadSharedExpert(family, config, kind.ffn_dim, dense);
  kind.has_shared_gate = family.has_shared_gate && kind.shared_ffn_dim != 0;
  if (const char* key = family.shared_sum_key) {
    const std::string rule = config->String(key).value_or("average");
    if (rule != "average" && rule != "sum") config->FailKey(key, "average or sum");
    if (rule == "average" && kind.shared_ffn_dim != 0) {
      kind.routed_factor *= 0.5f;
      kind.shared_factor *= 0.5f;
    }
  }
  return kind;
}

}  // namespace arn::convert
