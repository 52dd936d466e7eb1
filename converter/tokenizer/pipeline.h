// Reads the steps around the model: normalizer, pre_tokenizer and decoder of a tokenizer.json.
#pragma once

#include "converter/tokenizer/json_node.h"
#include "converter/tokenizer/tokenizer_tables.h"

namespace arn::convert {

// Each fills its list in `tables`, with sequences flattened. Throws TokenizerError.
void ReadNormalizers(const JsonNode& normalizer, TokenizerTables* tables);
void ReadPreTokenizers(const JsonNode& pre_tokenizer, TokenizerTables* tables);
void ReadDecoders(const JsonNode& decoder, TokenizerTables* tables);

// True if the last pre-tokenizer maps text to bytes. REQUIRES: the pre-tokenizers are read.
bool IsByteLevel(const TokenizerTables& tables);

}  // namespace arn::convert
