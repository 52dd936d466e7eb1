// A checkpoint whose tokenizer is a SentencePiece model alone.
#pragma once

#include <filesystem>
#include <string>

#include "converter/tokenizer/sentencepiece_file.h"
#include "converter/tokenizer/tokenizer_tables.h"

namespace arn::convert {

// The model's file in the folder; empty when there is none.
std::filesystem::path FindSentencePieceFile(const std::filesystem::path& folder);

// The tables that encode as SentencePiece does. Control symbols and the like in a text are the
// tokens themselves, as transformers has it; so the text behind one begins with a blank too, unless
// tokenizer_config.json says that `legacy` is false. The model does not say what stands around a
// text: add_bos_token and add_eos_token of tokenizer_config.json do, or else the beginning of text
// stands before it, if there is such a token, and otherwise the end of text behind it. Throws
// TokenizerError.
void ConvertSentencePiece(const std::filesystem::path& folder, const std::filesystem::path& file,
                          TokenizerTables* tables);

// Of that, the part without the folder's other files: `name` is the file's in errors. The added
// tokens are set, the segments are not.
struct Vocabulary;
Vocabulary TablesOfSentencePiece(const SentencePieceFile& model, const std::string& name,
                                 bool is_legacy, TokenizerTables* tables);

}  // namespace arn::convert
