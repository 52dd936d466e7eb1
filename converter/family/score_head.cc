#include "converter/family/score_head.h"

#include "converter/base/error.h"
#include "converter/family/families.h"
#include "nlohmann/json.hpp"

namespace arn::convert {
namespace {

constexpr uint32_t kDefaultLabels = 2;  // of transformers' PretrainedConfig
constexpr uint32_t kMostLabels = 1u << 16;

uint32_t CountLabels(ConfigReader* config) {
  const uint32_t given = config->Count("num_labels").value_or(kDefaultLabels);
  const nlohmann::json* names = config->Find("id2label");
  if (names == nullptr) return given;
  if (!names->is_object() || names->empty() || names->size() > kMostLabels) {
    config->FailKey("id2label", "an object with 1 to 65536 labels");
  }
  return static_cast<uint32_t>(names->size());
}

// The name of a class of torch, such as "torch.nn.modules.activation.Sigmoid".
ScoreRule ReadRule(ConfigReader* config, uint32_t n_labels) {
  constexpr const char* kOlderKey = "sbert_ce_default_activation_function";
  constexpr const char* kKey = "sentence_transformers";
  std::string name = config->String(kOlderKey).value_or("");
  const char* key = kOlderKey;
  if (const nlohmann::json* own = config->Find(kKey)) {
    if (own->is_object() && own->contains("activation_fn")) {
      const nlohmann::json& value = (*own)["activation_fn"];
      name = value.is_string() ? value.get<std::string>() : "?";
      key = kKey;
    }
  }
  if (name.empty()) return n_labels == 1 ? ScoreRule::kSigmoid : ScoreRule::kLogits;
  const std::string last = name.substr(name.rfind('.') + 1);
  if (last == "Sigmoid") return ScoreRule::kSigmoid;
  if (last == "Identity") return ScoreRule::kLogits;
  config->FailKey(key, "torch.nn.modules.activation.Sigmoid or torch.nn.modules.linear.Identity");
}

PoolKind ReadMode(const ScoreHead& head, ConfigReader* config) {
  if (head.mode_key == nullptr) return head.mode;
  const std::string mode = config->String(head.mode_key).value_or("cls");
  if (mode != "cls" && mode != "mean") config->FailKey(head.mode_key, "cls or mean");
  return mode == "cls" ? PoolKind::kFirst : PoolKind::kMean;
}

Activation ReadHeadActivation(const ScoreHead& head, ConfigReader* config) {
  if (head.activation_key == nullptr) return head.activation;
  const std::string name = config->String(head.activation_key).value_or("");
  if (name.empty()) return head.activation;
  const std::optional<Activation> found = ActivationOf(name);
  if (!found || *found == Activation::kXielu) {
    config->FailKey(head.activation_key, "gelu, silu, tanh or relu");
  }
  return *found;
}

}  // namespace

PoolingSpec ReadScoreHead(const ScoreHead& head, ConfigReader* config, uint32_t hidden) {
  PoolingSpec pooling;
  pooling.exists = pooling.is_score = true;
  pooling.mode = ReadMode(head, config);
  if (head.dense != nullptr) {
    DenseSpec dense;
    dense.weight = head.dense;
    dense.width = hidden;
    dense.has_bias = head.dense_bias_key == nullptr ? head.has_dense_bias
                                                    : config->Bool(head.dense_bias_key, false);
    dense.activation = ReadHeadActivation(head, config);
    if (head.norm != nullptr) dense.norm = head.norm;
    pooling.dense.push_back(dense);
  }
  DenseSpec out;
  out.weight = head.out;
  out.width = CountLabels(config);
  out.has_bias = head.has_out_bias;
  out.is_exact = true;
  pooling.dense.push_back(out);
  pooling.score = ReadRule(config, out.width);
  return pooling;
}

void ReadPooled(const Family& family, ConfigReader* config, DecoderSpec* spec) {
  spec->is_bidirectional = family.bidirectional_key == nullptr
                               ? family.is_bidirectional
                               : config->Bool(family.bidirectional_key, false);
  spec->makes_text = !spec->is_bidirectional && family.score == nullptr;
  spec->has_first_norm = family.has_first_norm;
  if (family.default_token_types != 0) {
    constexpr const char* kTypes = "type_vocab_size";
    spec->n_token_types = config->Count(kTypes).value_or(family.default_token_types);
    if (spec->n_token_types > kTokenTypes) config->FailKey(kTypes, "1 or 2");
  }
  if (family.context_has_offset) {
    if (spec->max_context <= spec->position_offset) {
      config->FailKey(family.keys.context, Format("above %u", spec->position_offset).c_str());
    }
    spec->max_context -= spec->position_offset;
  }
  if (family.score != nullptr) spec->pooling = ReadScoreHead(*family.score, config, spec->hidden);
}

void ReadHeadDense(const Family& family, ConfigReader* config, DecoderSpec* spec) {
  spec->has_head_dense_bias = config->Bool(family.head_dense_bias_key, false);
  const char* key = family.head_activation_key;
  const auto activation = ActivationOf(config->String(key).value_or("gelu"));
  if (!activation || *activation == Activation::kXielu) config->FailKey(key, "an activation");
  spec->head_activation = *activation;
}

}  // namespace arn::convert
