// Metadata of GGUF files as configs and tokenizers, without files.
#pragma once

#include <string>
#include <vector>

#include "converter/gguf/gguf_config.h"
#include "converter/gguf/gguf_tokenizer.h"
#include "nlohmann/json.hpp"
#include "tests/unit/converter/expect_error.h"

namespace arn::convert {

using nlohmann::json;

// Keys of a small model; those of `changes`, after "ARCHITECTURE.", replace or remove (null) them.
inline json MetadataOf(const std::string& arch, const json& changes) {
  json all = {{"embedding_length", 64},
              {"block_count", 2},
              {"context_length", 128},
              {"feed_forward_length", 96},
              {"attention.head_count", 4},
              {"attention.layer_norm_rms_epsilon", 0.5},
              {"attention.layer_norm_epsilon", 0.25}};
  if (!changes.is_null()) all.merge_patch(changes);
  json metadata = {{"general.architecture", arch}};
  for (const auto& [key, value] : all.items()) metadata[arch + "." + key] = value;
  return metadata;
}

inline json ConfigOf(const std::string& arch, const json& changes, GgufFacts facts = {}) {
  if (facts.vocab == 0) facts.vocab = 100;
  const json metadata = MetadataOf(arch, changes);
  ConfigReader reader(metadata, "m.gguf");
  return MakeConfig(ReadGgufArchitecture(facts, &reader), facts, &reader);
}

inline std::string ErrorOf(const std::string& arch, const json& changes,
                           const GgufFacts& facts = {}) {
  return test::ErrorOf([&] { ConfigOf(arch, changes, facts); });
}

// Vocabularies: metadata after "tokenizer.ggml.".
inline json TokenizerOf(const json& changes, std::vector<std::string>* warnings = nullptr) {
  json metadata = json::object();
  for (const auto& [key, value] : changes.items()) metadata["tokenizer.ggml." + key] = value;
  ConfigReader reader(metadata, "t.gguf");
  std::vector<std::string> ignored;
  return MakeTokenizerJson(&reader, warnings == nullptr ? &ignored : warnings);
}

inline std::string TokenizerError(const json& base, const json& changes) {
  json all = base;
  all.merge_patch(changes);
  return test::ErrorOf([&] { TokenizerOf(all); });
}

inline const json kPieces = {{"model", "llama"},
                             {"tokens", {"<unk>", "<s>", "a", "b", "ab", "", "\xC3\xA9", "", "x"}},
                             {"token_type", {2, 3, 1, 1, 1, 3, 4, 1, 5}},
                             {"scores", {0, 0, -1, -2, -3, 0, -4, 0, 0}}};

}  // namespace arn::convert
