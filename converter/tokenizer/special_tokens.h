// Tokens outside the model's vocabulary, and the special tokens of tokenizer_config.json.
#pragma once

#include <filesystem>
#include <string>
#include <unordered_map>

#include "converter/tokenizer/json_node.h"
#include "converter/tokenizer/tokenizer_tables.h"
#include "converter/tokenizer/vocabulary.h"
#include "nlohmann/json.hpp"

namespace arn::convert {

// Maps texts to ids, added tokens first, as in the reference.
class TokenIds {
 public:
  TokenIds(const Vocabulary& vocabulary, const TokenizerTables& tables)
      : vocabulary_(vocabulary.ids) {
    for (const auto& token : tables.added) added_.emplace(token.content, token.id);
  }
  // Returns -1 if no token has the text.
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

// Reads added_tokens of a tokenizer.json.
void ReadAddedTokens(const JsonNode& node, const Vocabulary& vocabulary, TokenizerTables* tables);

// Sorts tokens by precedence, for texts that normalise to the same text.
void OrderAddedTokens(TokenizerTables* tables);

// Reads post_processor of a tokenizer.json: the ids before and after a text.
void ReadPostProcessor(const JsonNode& node, TokenizerTables* tables);

// tokenizer_config.json and special_tokens_map.json; empty objects if absent.
struct ConfigFiles {
  nlohmann::json config;
  nlohmann::json special_tokens;
};
ConfigFiles ReadConfigFiles(const std::filesystem::path& folder);

// Sets bos_id, eos_id and pad_id.
void ReadNamedTokens(const ConfigFiles& files, const TokenIds& ids, TokenizerTables* tables);
// Warns about settings that transformers ignores if there is a tokenizer.json.
void CompareSettings(const ConfigFiles& files, TokenizerTables* tables);

}  // namespace arn::convert
