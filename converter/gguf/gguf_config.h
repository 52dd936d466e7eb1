// Converts the metadata of a GGUF file into an equivalent config.json, so that one family
// table covers every checkpoint format.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "converter/gguf/architectures.h"
#include "converter/hf/config_reader.h"
#include "nlohmann/json_fwd.hpp"

namespace arn::convert {

// Facts about the file that the metadata does not hold.
struct GgufFacts {
  uint64_t vocab = 0;             // rows of the embedding
  std::set<std::string> tensors;  // names
  std::map<std::string, std::vector<uint64_t>> shapes;
  std::vector<float> short_factors, long_factors;  // rope_factors_short, .._long; empty: none
  bool has_rope_factors = false;                   // rope_freqs
  std::vector<float> rope_factors;
  // Sliding window of every layer from the user (0: none), for files that do not store it.
  std::optional<uint32_t> window;
};

// Returns the row of the file's architecture. Throws ConvertError that lists the supported ones.
const GgufArchitecture& ReadGgufArchitecture(const GgufFacts& facts, ConfigReader* metadata);

// Returns the assumption that the conversion of a file of `row` makes because no key says it and
// its size is not a published one; empty: none.
std::string UnsaidOf(const GgufArchitecture& row, const GgufFacts& facts, ConfigReader* metadata);

// Returns the equivalent of config.json. Throws ConvertError for architecture keys that change the
// computation in an unsupported way. `metadata` records which keys were read.
nlohmann::json MakeConfig(const GgufArchitecture& row, const GgufFacts& facts,
                          ConfigReader* metadata);

}  // namespace arn::convert
