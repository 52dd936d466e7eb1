// A checkpoint whose tokenizer is a SentencePiece model alone.
#pragma once

#include <filesystem>

#include "converter/tokenizer/sentencepiece_file.h"
#include "converter/tokenizer/special_tokens.h"
#include "converter/tokenizer/tokenizer_tables.h"

namespace arn::convert {

// The model's file in the folder; empty when there is none.
std::filesystem::path FindSentencePieceFile(const std::filesystem::path& folder);

// The tables that encode as SentencePiece does; `path` is the model's. Control symbols and the like
// in a text are the tokens themselves, as transformers has it; so the text behind one begins with a
// blank too, unless tokenizer_config.json says that `legacy` is false. The model does not say what
// stands around a text: add_bos_token and add_eos_token of tokenizer_config.json do, or else the
// beginning of text stands before it, if there is such a token, and otherwise the end of text
// behind it. Tokens that were added later are in tokenizer_config.json, or in added_tokens.json
// beside the model. Throws TokenizerError.
void ConvertSentencePiece(const SentencePieceFile& model, const std::filesystem::path& path,
                          const ConfigFiles& files, TokenizerTables* tables);

}  // namespace arn::convert
