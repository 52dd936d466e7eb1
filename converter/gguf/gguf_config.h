// From the metadata of a GGUF file to the config.json that would say the same, so that the family
// table is what decides about a model, wherever it comes from.
#pragma once

#include <set>
#include <string>

#include "converter/gguf/architectures.h"
#include "converter/hf/config_reader.h"
#include "nlohmann/json.hpp"

namespace arn::convert {

// What decides besides the metadata.
struct GgufFacts {
  uint64_t vocab = 0;                              // rows of the embedding
  std::set<std::string> tensors;                   // names
  std::vector<float> short_factors, long_factors;  // rope_factors_short, .._long; empty: none
};

// The row of the file's architecture. Throws ConvertError naming those that are supported.
const GgufArchitecture& ReadGgufArchitecture(ConfigReader* metadata);

// The equivalent of config.json. Throws ConvertError for keys of the architecture that would change
// the computation and are not understood. `metadata` remembers what was read.
nlohmann::json MakeConfig(const GgufArchitecture& row, const GgufFacts& facts,
                          ConfigReader* metadata);

}  // namespace arn::convert
