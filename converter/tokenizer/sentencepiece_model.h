// Converts a checkpoint whose only tokenizer is a SentencePiece model.
#pragma once

#include <filesystem>

#include "converter/tokenizer/sentencepiece_file.h"
#include "converter/tokenizer/special_tokens.h"
#include "converter/tokenizer/tokenizer_tables.h"

namespace arn::convert {

// Returns the model's file in the folder; empty if there is none.
std::filesystem::path FindSentencePieceFile(const std::filesystem::path& folder);

// Builds tables that encode as SentencePiece does; `path` is the model's. Control symbols in a text
// become their tokens, as in transformers; so the text after one starts with a space too, unless
// tokenizer_config.json sets `legacy` to false.
// The model does not define the tokens around a text: add_bos_token and add_eos_token of
// tokenizer_config.json do; else BOS is added before it, or without a BOS token, EOS after it.
// Later added tokens come from tokenizer_config.json, or from added_tokens.json beside the model.
// Throws TokenizerError.
void ConvertSentencePiece(const SentencePieceFile& model, const std::filesystem::path& path,
                          const ConfigFiles& files, TokenizerTables* tables);

}  // namespace arn::convert
