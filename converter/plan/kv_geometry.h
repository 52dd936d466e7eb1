// KV cache geometry of a config, for memory plans; also for models that cannot be converted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nlohmann/json_fwd.hpp"

namespace arn::convert {

// Layers with the same KV shape and the same visible positions.
struct KvGeometryGroup {
  uint32_t n_layers = 0;  // counts only layers that store keys and values
  uint32_t n_kv_heads = 0;
  uint32_t head_dim = 0;
  uint32_t window = 0;     // tokens a query sees, itself included; 0: all
  uint32_t chunk = 0;      // a query sees only its own chunk of this many positions; 0: no chunks
  bool keys_only = false;  // latent attention: the keys are the values too; never quantised
};

// Layers with a recurrent state of the same size instead of keys and values.
struct StateGeometryGroup {
  uint32_t n_layers = 0;
  uint64_t state_floats = 0;  // per layer
};

struct KvGeometry {
  std::string model;                    // the first of architectures, else model_type, else ""
  uint32_t max_context = 0;             // tokens; 0: the config does not say
  std::vector<KvGeometryGroup> groups;  // in the order of their first layers
  std::vector<StateGeometryGroup> states;
  std::vector<std::string> notes;  // assumptions, a sentence each
};

// Reads the contents of config.json. `label` names the file in errors. Throws ConvertError with
// file, key and value for a missing or wrong key and for an unknown KV layout.
KvGeometry ReadKvGeometry(const nlohmann::json& config, const std::string& label);

}  // namespace arn::convert
