// From the tokenizer of a GGUF file to the tokenizer.json that would say the same.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "converter/hf/config_reader.h"
#include "nlohmann/json.hpp"

namespace arn::convert {

// tokenizer.ggml.model "gpt2": byte-level BPE by merges, cut as tokenizer.ggml.pre says. "llama":
// SentencePiece's BPE by scores, whose merges are those that transformers makes of them. Null when
// the file has no tokenizer (model "none" or no such key). Throws ConvertError for other models,
// for names of pre-tokenizers that are not known, and for tables that do not fit each other.
nlohmann::json MakeTokenizerJson(ConfigReader* metadata, std::vector<std::string>* warnings);

// The tokens at which generation ends: tokenizer.ggml.eos_token_id, eot_token_id and eom_token_id,
// and control tokens of texts that end turns in known chat formats (llama.cpp ends at them too).
std::vector<int64_t> EndTokens(ConfigReader* metadata);

}  // namespace arn::convert
