// How text is cut before byte-level BPE, by the name that a GGUF file gives for it
// (tokenizer.ggml.pre). The rules are those of the tokenizer.json of the models that have the name.
#pragma once

#include <optional>
#include <string>

#include "nlohmann/json.hpp"

namespace arn::convert {

struct GgufPreTokenizer {
  nlohmann::json normalizer;     // as in tokenizer.json; null: none
  nlohmann::json pre_tokenizer;  // as in tokenizer.json
  bool ignore_merges = false;
  bool adds_bos = false;  // where the file does not say
};

// Nothing for a name that is not known.
std::optional<GgufPreTokenizer> FindPreTokenizer(const std::string& name);
// "default, gpt-2, ...", for messages.
std::string PreTokenizerNames();

}  // namespace arn::convert
