// The checkpoint's own defaults for generating text: special ids and sampling.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace arn::convert {

struct GenerationSpec {
  bool do_sample = false;
  float temperature = 1.0f;
  uint32_t top_k = 0;  // 0: off
  float top_p = 1.0f;  // above 0
  float min_p = 0.0f;  // below 1
  std::vector<uint32_t> eos_ids;
  std::vector<uint32_t> bos_ids;
  int32_t pad_id = -1;
  std::vector<uint32_t> start_ids;  // of a decoder with a source

  bool operator==(const GenerationSpec&) const = default;
};

// Where the defaults are written. `label` names the file in messages.
struct GenerationSources {
  const nlohmann::json* generation = nullptr;  // generation_config.json; null: there is none
  std::string generation_label;
  const nlohmann::json* config = nullptr;  // config.json
  std::string config_label;
};

// As transformers: ids are those of generation_config.json, those that it does not give are those
// of config.json; a number or a list. Sampling is what generation_config.json says, or config.json
// where there is no generation_config.json. Without do_sample nothing is sampled whatever the other
// settings are; they are kept for who asks for sampling.
//
// Ids outside the vocabulary count as absent, with a warning unless they are -1. A setting that the
// runtime does not apply gets a warning with its value unless the value changes nothing, and so do
// keys that are not known. Throws ConvertError for a value that the setting cannot have.
GenerationSpec ReadGeneration(const GenerationSources& sources, uint32_t vocab,
                              std::vector<std::string>* warnings);

// With generation_config.json of `folder`, where it has one.
GenerationSpec ReadGeneration(const std::filesystem::path& folder, const nlohmann::json& config,
                              const std::string& config_label, uint32_t vocab,
                              std::vector<std::string>* warnings);

}  // namespace arn::convert
