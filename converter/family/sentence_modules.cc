#include "converter/family/sentence_modules.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "converter/base/error.h"
#include "converter/family/families.h"
#include "converter/hf/checkpoint.h"
#include "converter/hf/config_reader.h"
#include "converter/hf/json_file.h"
#include "nlohmann/json.hpp"

namespace arn::convert {
namespace {

namespace fs = std::filesystem;

// The text that Qwen3-Reranker was trained with, from its model card.
constexpr const char* kPairTemplate =
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and "
    "the Instruct provided. Note that the answer can only be \"yes\" or \"no\".<|im_end|>\n"
    "<|im_start|>user\n<Instruct>: {instruction}\n<Query>: {query}\n<Document>: {document}"
    "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n";
constexpr const char* kInstruction =
    "Given a web search query, retrieve relevant passages that answer the query";

// Names of pooling modes, and the older key of each.
struct ModeRow {
  const char* name;
  const char* key;
  PoolKind mode;
};
constexpr ModeRow kModes[] = {
    {"cls", "pooling_mode_cls_token", PoolKind::kFirst},
    {"lasttoken", "pooling_mode_lasttoken", PoolKind::kLast},
    {"mean", "pooling_mode_mean_tokens", PoolKind::kMean},
    {"max", "pooling_mode_max_tokens", PoolKind::kMax},
    {"mean_sqrt_len_tokens", "pooling_mode_mean_sqrt_len_tokens", PoolKind::kMeanSqrt},
    {"weightedmean", "pooling_mode_weightedmean_tokens", PoolKind::kWeightedMean},
};
constexpr const char* kModeNames =
    "cls, lasttoken, mean, max, mean_sqrt_len_tokens or weightedmean";

std::optional<PoolKind> ModeOf(const std::string& name) {
  for (const ModeRow& row : kModes) {
    if (name == row.name) return row.mode;
  }
  return std::nullopt;
}

// Returns "Pooling" of "sentence_transformers.models.Pooling".
std::string LastPart(const std::string& name) { return name.substr(name.rfind('.') + 1); }

PoolKind ReadMode(ConfigReader* config) {
  if (const std::optional<std::string> name = config->String("pooling_mode")) {
    const std::optional<PoolKind> mode = ModeOf(*name);
    if (!mode) config->FailKey("pooling_mode", kModeNames);
    return *mode;
  }
  const ModeRow* chosen = nullptr;
  for (const ModeRow& row : kModes) {
    if (!config->Bool(row.key, false)) continue;
    if (chosen != nullptr) {
      Fail("%s: both %s and %s are true: several poolings at once are not supported",
           config->label().c_str(), chosen->key, row.key);
    }
    chosen = &row;
  }
  if (chosen == nullptr) Fail("%s: no pooling_mode is true", config->label().c_str());
  return chosen->mode;
}

// Returns whether prompts are pooled.
bool ReadPoolingModule(const fs::path& folder, DecoderSpec* spec) {
  const fs::path path = folder / "config.json";
  const nlohmann::json json = LoadJson(path);
  ConfigReader config(json, path.string());
  spec->pooling.mode = ReadMode(&config);
  for (const char* key : {"word_embedding_dimension", "embedding_dimension"}) {
    const std::optional<uint32_t> width = config.Count(key);
    if (width && *width != spec->hidden) {
      config.FailKey(key, Format("the width of the layers, %u", spec->hidden).c_str());
    }
  }
  return config.Bool("include_prompt", true);
}

void ReadDenseModule(const fs::path& folder, uint32_t width, DecoderSpec* spec) {
  const fs::path path = folder / "config.json";
  const nlohmann::json json = LoadJson(path);
  ConfigReader config(json, path.string());
  if (config.RequiredCount("in_features") != width) {
    config.FailKey("in_features", Format("the width before it, %u", width).c_str());
  }
  DenseSpec dense;
  dense.weight = "linear";
  dense.width = config.RequiredCount("out_features");
  dense.has_bias = config.Bool("bias", true);
  std::string name = config.String("activation_function").value_or("Tanh");
  name = LastPart(name);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (name != "identity") {
    dense.activation = ActivationOf(name);
    if (!dense.activation || *dense.activation == Activation::kXielu) {
      config.FailKey("activation_function", "Identity, Tanh, GELU, ReLU, SiLU or Sigmoid of torch");
    }
  }
  dense.checkpoint = std::make_shared<const Checkpoint>(folder);
  spec->pooling.dense.push_back(std::move(dense));
}

// Reads modules.json. Returns whether prompts are pooled.
bool ReadModules(const fs::path& folder, DecoderSpec* spec) {
  const fs::path path = folder / "modules.json";
  const nlohmann::json modules = LoadJson(path);
  if (!modules.is_array()) Fail("%s: expected a list of modules", path.c_str());
  bool has_pooling = false, pools_prompts = true;
  uint32_t width = spec->hidden;
  for (const nlohmann::json& module : modules) {
    if (!module.is_object() || !module.contains("type") || !module["type"].is_string() ||
        !module.contains("path") || !module["path"].is_string()) {
      Fail("%s: expected modules with type and path, found %s", path.c_str(),
           Shown(module).c_str());
    }
    const std::string type = LastPart(module["type"].get<std::string>());
    const fs::path at = folder / module["path"].get<std::string>();
    const bool is_first = &module == &modules.front();
    if (is_first != (type == "Transformer") || (!is_first && has_pooling == (type == "Pooling")) ||
        spec->pooling.normalizes) {
      Fail("%s: module %s is not where it is supported: Transformer, Pooling, Dense .., Normalize",
           path.c_str(), type.c_str());
    }
    if (type == "Pooling") {
      pools_prompts = ReadPoolingModule(at, spec);
      has_pooling = true;
    } else if (type == "Dense") {
      ReadDenseModule(at, width, spec);
      width = spec->pooling.dense.back().width;
    } else if (type == "Normalize") {
      spec->pooling.normalizes = true;
    } else if (!is_first) {
      Fail("%s: module %s is not supported", path.c_str(), type.c_str());
    }
  }
  if (!has_pooling) Fail("%s: no module Pooling", path.c_str());
  return pools_prompts;
}

void ReadPrompts(const fs::path& folder, PoolingSpec* pooling) {
  const fs::path path = folder / "config_sentence_transformers.json";
  if (!fs::exists(path)) return;
  const nlohmann::json json = LoadJson(path);
  ConfigReader config(json, path.string());
  if (const nlohmann::json* prompts = config.Find("prompts")) {
    if (!prompts->is_object()) config.FailKey("prompts", "an object of texts");
    for (const auto& [name, text] : prompts->items()) {
      if (!text.is_string()) config.FailKey("prompts." + name, "a text");
      pooling->prompts.push_back({name, text.get<std::string>()});
    }
  }
  const std::optional<std::string> chosen = config.String("default_prompt_name");
  if (!chosen) return;
  for (size_t i = 0; i < pooling->prompts.size(); ++i) {
    if (pooling->prompts[i].name == *chosen) pooling->default_prompt = static_cast<int32_t>(i);
  }
  if (pooling->default_prompt < 0) config.FailKey("default_prompt_name", "a name in prompts");
}

// The longest text: that of sentence_bert_config.json, or of the tokenizer.
uint32_t ReadMaxTokens(const fs::path& folder, uint32_t max_context) {
  uint32_t most = max_context;
  const fs::path own = folder / "sentence_bert_config.json";
  if (fs::exists(own)) {
    const nlohmann::json json = LoadJson(own);
    ConfigReader config(json, own.string());
    if (config.Bool("do_lower_case", false)) {
      config.FailKey("do_lower_case", "false: the tokenizer is to do it");
    }
    if (const std::optional<uint32_t> given = config.Count("max_seq_length")) {
      return std::min(most, *given);
    }
  }
  const fs::path tokenizer = folder / "tokenizer_config.json";
  if (!fs::exists(tokenizer)) return most;
  const nlohmann::json json = LoadJson(tokenizer);
  if (!json.is_object() || !json.contains("model_max_length")) return most;
  const nlohmann::json& given = json["model_max_length"];
  if (!given.is_number() || given.get<double>() < 1 || given.get<double>() > most) return most;
  return static_cast<uint32_t>(given.get<double>());
}

void AddScoreTokens(const PoolingChoice& choice, DecoderSpec* spec) {
  if (choice.score_ids.size() != 2) Fail("--score-tokens: expected two tokens, such as yes,no");
  if (!spec->makes_text || spec->logits_softcap != 0) {
    Fail("--score-tokens: %s", spec->makes_text ? "a model that caps its logits is not supported"
                                                : "the model has no head of tokens");
  }
  PoolingSpec& pooling = spec->pooling;
  pooling.mode = PoolKind::kLast;
  pooling.dense.clear();
  DenseSpec dense;
  dense.width = 2;
  dense.rows = {choice.score_ids[1], choice.score_ids[0]};
  dense.is_exact = true;
  pooling.dense.push_back(dense);
  pooling.exists = pooling.is_score = true;
  pooling.normalizes = false;
  pooling.score = ScoreRule::kLastOfSoftmax;
  pooling.prompts.clear();
  pooling.default_prompt = -1;
  pooling.pair_template = choice.pair_template.empty() ? kPairTemplate : choice.pair_template;
  pooling.instruction = choice.instruction.empty() ? kInstruction : choice.instruction;
}

}  // namespace

void ChoosePooling(const PoolingChoice& choice, DecoderSpec* spec) {
  PoolingSpec& pooling = spec->pooling;
  if (!choice.mode.empty()) {
    const std::optional<PoolKind> mode = ModeOf(choice.mode);
    if (!mode) Fail("--pooling %s: expected %s", choice.mode.c_str(), kModeNames);
    if (pooling.is_score) Fail("--pooling: the checkpoint has a head of scores");
    pooling.exists = true;
    pooling.mode = *mode;
  }
  if (!choice.score_tokens.empty()) {
    if (pooling.is_score) Fail("--score-tokens: the checkpoint has a head of scores");
    AddScoreTokens(choice, spec);
  } else if (!choice.pair_template.empty()) {
    if (!pooling.is_score) Fail("--pair-template: the model makes no scores");
    pooling.pair_template = choice.pair_template;
    pooling.instruction = choice.instruction;
  }
}

void ReadSentenceModules(const fs::path& folder, const PoolingChoice& choice, DecoderSpec* spec,
                         std::vector<std::string>* warnings) {
  PoolingSpec& pooling = spec->pooling;
  const bool has_modules = fs::exists(folder / "modules.json");
  if (!pooling.is_score && has_modules && choice.score_tokens.empty()) {
    const bool pools_prompts = ReadModules(folder, spec);
    pooling.exists = true;
    ReadPrompts(folder, &pooling);
    if (!pools_prompts && !pooling.prompts.empty()) {
      Fail("%s: include_prompt is false, which is not supported", folder.c_str());
    }
  }
  ChoosePooling(choice, spec);
  if (!pooling.exists && !spec->makes_text) {
    pooling.exists = true;
    warnings->push_back(folder.string() +
                        ": no modules.json: vectors are the mean of all tokens (see --pooling)");
  }
  if (pooling.exists) pooling.max_tokens = ReadMaxTokens(folder, spec->max_context);
}

}  // namespace arn::convert
