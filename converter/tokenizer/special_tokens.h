// Tokens beside the model's vocabulary, and what the files beside tokenizer.json say of them.
#pragma once

#include <filesystem>
#include <string>
#include <unordered_map>

#include "converter/tokenizer/json_node.h"
#include "converter/tokenizer/tokenizer_tables.h"
#include "converter/tokenizer/vocabulary.h"

namespace arn::convert {

// Ids of texts: added tokens first, as in the reference.
class TokenIds {
 public:
  TokenIds(const Vocabulary& vocabulary, const TokenizerTables& tables)
      : vocabulary_(vocabulary.ids) {
    for (const auto& token : tables.added) added_.emplace(token.content, token.id);
  }
  // -1 when no token has the text.
  int32_t Find(const std::string& text) const {
    if (const auto found = added_.find(text); found != added_.end()) {
      return static_cast<int32_t>(found->second);
    }
    const auto found = vocabulary_.find(text);
    return found == vocabulary_.end() ? -1 : static_cast<int32_t>(found->second);
  }

 private:
  const std::unordered_map<std::string, uint32_t>& vocabulary_;
  std::unordered_map<std::string, uint32_t> added_;
};

// tokenizer.json's added_tokens.
void ReadAddedTokens(const JsonNode& node, const Vocabulary& vocabulary, TokenizerTables* tables);

// The order in which texts that become equal by normalization count.
void OrderAddedTokens(TokenizerTables* tables);

// tokenizer.json's post_processor: the ids before and behind a text.
void ReadPostProcessor(const JsonNode& node, TokenizerTables* tables);

// tokenizer_config.json and special_tokens_map.json; empty objects where they are not.
struct ConfigFiles {
  nlohmann::json config;
  nlohmann::json special_tokens;
};
ConfigFiles ReadConfigFiles(const std::filesystem::path& folder);

// Sets bos_id, eos_id and pad_id.
void ReadNamedTokens(const ConfigFiles& files, const TokenIds& ids, TokenizerTables* tables);
// Warns of settings that transformers does not look at when there is a tokenizer.json.
void CompareSettings(const ConfigFiles& files, TokenizerTables* tables);

}  // namespace arn::convert
