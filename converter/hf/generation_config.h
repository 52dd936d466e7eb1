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
  uint32_t top_k = 0;
  float top_p = 1.0f;
  float min_p = 0.0f;
  std::vector<uint32_t> eos_ids;
  int32_t bos_id = -1;
  int32_t pad_id = -1;

  bool operator==(const GenerationSpec&) const = default;
};

// Reads generation_config.json of `folder`; ids that it does not give come from `config`
// (config.json). Ids outside the vocabulary count as absent, with a warning unless they are -1, as
// do settings that change the output and that the runtime does not apply by itself.
GenerationSpec ReadGeneration(const std::filesystem::path& folder, const nlohmann::json& config,
                              const std::string& config_label, uint32_t vocab,
                              std::vector<std::string>* warnings);

}  // namespace arn::convert
