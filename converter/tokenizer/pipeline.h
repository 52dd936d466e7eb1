// The steps around the model: tokenizer.json's normalizer, pre_tokenizer and decoder.
#pragma once

#include "converter/tokenizer/json_node.h"
#include "converter/tokenizer/tokenizer_tables.h"

namespace arn::convert {

// Each fills its list of `tables`, sequences flattened. They throw TokenizerError.
void ReadNormalizers(const JsonNode& normalizer, TokenizerTables* tables);
void ReadPreTokenizers(const JsonNode& pre_tokenizer, TokenizerTables* tables);
void ReadDecoders(const JsonNode& decoder, TokenizerTables* tables);

// After the pre-tokenizers were read: the last one spells text in bytes.
bool IsByteLevel(const TokenizerTables& tables);

}  // namespace arn::convert
