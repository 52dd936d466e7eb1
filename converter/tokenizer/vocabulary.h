// Reads the model of a tokenizer.json, of any type, before its segments are built.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "converter/tokenizer/json_node.h"
#include "converter/tokenizer/tokenizer_tables.h"

namespace arn::convert {

// Bounds ids: gaps become empty tokens, and far larger ids are an error.
inline constexpr uint32_t kMaxTokenId = 1u << 24;

struct BpeMerge {
  uint32_t rank;
  uint32_t id;
};

struct Vocabulary {
  std::vector<std::string> texts;  // by id; empty for ids without a token
  std::unordered_map<std::string, uint32_t> ids;
  uint32_t size = 0;                              // number of tokens
  std::unordered_map<uint64_t, BpeMerge> merges;  // Bpe: by left << 32 | right
  std::vector<double> scores;                     // Unigram: by id
  // Unigram: true if encoding can produce the token; empty: all true.
  std::vector<bool> is_matched;

  // REQUIRES: no other token has `text` or `id`; `id` is at most kMaxTokenId.
  void Add(const std::string& text, uint32_t id);
};

// Reads the model and sets its fields in `tables`, except for the segments. REQUIRES: the
// pre-tokenizers are read. Throws TokenizerError.
Vocabulary ReadModel(const JsonNode& model, TokenizerTables* tables);

// Parts of ReadModel, by model type. Unigram sets unk_score too.
Vocabulary ReadBpeModel(const JsonNode& model, TokenizerTables* tables);
Vocabulary ReadUnigramModel(const JsonNode& model, TokenizerTables* tables);
Vocabulary ReadWordPieceModel(const JsonNode& model, TokenizerTables* tables);
Vocabulary ReadWordLevelModel(const JsonNode& model, TokenizerTables* tables);

// Reads an object that maps texts to ids. REQUIRES: the vocabulary is empty.
void ReadTexts(const JsonNode& node, Vocabulary* out);

// Sets unk_score from the lowest score, as Hugging Face tokenizers does.
void SetUnknownScore(const Vocabulary& vocabulary, TokenizerTables* tables);

// Builds the segments and n_tokens. REQUIRES: the vocabulary and the added tokens are read.
void BuildSegments(const Vocabulary& vocabulary, TokenizerTables* tables);

}  // namespace arn::convert
