// What a config says about keys and values, and nothing else of it: for plans of memory, of models
// too that cannot be converted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace arn::convert {

// Layers whose keys and values have one shape and that see the same positions.
struct KvGeometryGroup {
  uint32_t n_layers = 0;  // with keys and values of their own
  uint32_t n_kv_heads = 0;
  uint32_t head_dim = 0;
  uint32_t window = 0;  // tokens a query sees, itself included; 0: all
  uint32_t chunk = 0;   // a query sees none before its chunk of so many positions; 0: no chunks
};

struct KvGeometry {
  std::string model;                    // the first of architectures, else model_type, else ""
  uint32_t max_context = 0;             // tokens; 0: the config does not say
  std::vector<KvGeometryGroup> groups;  // in the order of their first layers
  std::vector<std::string> notes;       // what was taken for granted, a sentence each
};

// From the contents of config.json. `label` names the file in errors. Throws ConvertError, which
// names the file, the key and the value, for what is missing, is wrong, or keeps its keys and
// values in a way that is not known here.
KvGeometry ReadKvGeometry(const nlohmann::json& config, const std::string& label);

}  // namespace arn::convert
