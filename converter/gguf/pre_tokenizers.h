// Pre-tokenisation rules of byte-level BPE, by the name in a GGUF file (tokenizer.ggml.pre). The
// rules come from the tokenizer.json of the models with that name.
#pragma once

#include <optional>
#include <string>

#include "nlohmann/json.hpp"

namespace arn::convert {

struct GgufPreTokenizer {
  nlohmann::json normalizer;     // as in tokenizer.json; null: none
  nlohmann::json pre_tokenizer;  // as in tokenizer.json
  bool ignore_merges = false;
  bool adds_bos = false;  // default if the file does not say
};

// Returns nullopt for an unknown name.
std::optional<GgufPreTokenizer> FindPreTokenizer(const std::string& name);
// Returns "default, gpt-2, ...", for messages.
std::string PreTokenizerNames();

}  // namespace arn::convert
