// tokenizer.json's model, whichever it is: what is read of it before the segments are made.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "converter/tokenizer/json_node.h"
#include "converter/tokenizer/tokenizer_tables.h"

namespace arn::convert {

// Ids leave holes of empty tokens; far too large ones are a mistake.
inline constexpr uint32_t kMaxTokenId = 1u << 24;

struct BpeMerge {
  uint32_t rank;
  uint32_t id;
};

struct Vocabulary {
  std::vector<std::string> texts;  // by id; those of ids without a token are empty
  std::unordered_map<std::string, uint32_t> ids;
  uint32_t size = 0;                              // how many tokens there are
  std::unordered_map<uint64_t, BpeMerge> merges;  // Bpe: by left << 32 | right
  std::vector<double> scores;                     // Unigram: by id
  // Unigram: whether text can have the token; empty: it can have all of them.
  std::vector<bool> is_matched;

  // `text` and `id` are in use by no other token; `id` is at most kMaxTokenId.
  void Add(const std::string& text, uint32_t id);
};

// Reads the model and sets its fields in `tables`, but for the segments. The pre-tokenizers were
// read. Throws TokenizerError.
Vocabulary ReadModel(const JsonNode& model, TokenizerTables* tables);

// Of ReadModel: the models by their kinds. The Unigram's sets unk_score too.
Vocabulary ReadBpeModel(const JsonNode& model, TokenizerTables* tables);
Vocabulary ReadUnigramModel(const JsonNode& model, TokenizerTables* tables);
Vocabulary ReadWordPieceModel(const JsonNode& model, TokenizerTables* tables);
Vocabulary ReadWordLevelModel(const JsonNode& model, TokenizerTables* tables);

// An object of texts and ids.
void ReadTexts(const JsonNode& node, Vocabulary* out);

// Sets unk_score from the lowest of the scores, as Hugging Face tokenizers does.
void SetUnknownScore(const Vocabulary& vocabulary, TokenizerTables* tables);

// Fills the segments and n_tokens from the vocabulary and the added tokens, which were read.
void BuildSegments(const Vocabulary& vocabulary, TokenizerTables* tables);

}  // namespace arn::convert
