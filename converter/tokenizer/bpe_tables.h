// tokenizer.json's model: vocabulary and merges, and the segments that are made of them.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "converter/tokenizer/json_node.h"
#include "converter/tokenizer/tokenizer_tables.h"

namespace arn::convert {

struct BpeMerge {
  uint32_t rank;
  uint32_t id;
};

struct BpeVocabulary {
  std::unordered_map<std::string, uint32_t> ids;
  std::unordered_map<uint64_t, BpeMerge> merges;  // by left << 32 | right
};

// Reads the model and sets its flags in `tables`. Throws TokenizerError.
BpeVocabulary ReadBpeModel(const JsonNode& model, TokenizerTables* tables);

// Fills the segments and n_tokens from the vocabulary and the added tokens, which were read. The
// pre-tokenizers were read too: they decide whether units are bytes.
void BuildBpeSegments(const BpeVocabulary& vocabulary, TokenizerTables* tables);

}  // namespace arn::convert
