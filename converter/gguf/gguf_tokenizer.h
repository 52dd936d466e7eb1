// Converts the tokenizer of a GGUF file into an equivalent tokenizer.json.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "converter/hf/config_reader.h"
#include "nlohmann/json_fwd.hpp"

namespace arn::convert {

// tokenizer.ggml.model "gpt2": byte-level BPE with merges, pre-tokenised as tokenizer.ggml.pre.
// "llama": SentencePiece BPE with scores, converted to merges as in transformers. "t5":
// SentencePiece Unigram. Returns null if the file has no tokenizer (model "none" or no such key).
// Throws ConvertError for other models, for unknown pre-tokenizers, and for inconsistent tables.
nlohmann::json MakeTokenizerJson(ConfigReader* metadata, std::vector<std::string>* warnings);

// Returns the stop token ids: tokenizer.ggml.eos_token_id, eot_token_id and eom_token_id, and
// control tokens that end a turn in known chat formats (as in llama.cpp).
std::vector<int64_t> EndTokens(ConfigReader* metadata);

}  // namespace arn::convert
