// Rotary position embeddings: from a config's keys to the table that the runtime multiplies
// positions with.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "converter/decoder_spec.h"
#include "converter/hf/config_reader.h"

namespace arn::convert {

struct RopeQuery {
  uint32_t head_dim = 0;
  uint32_t max_context = 0;
  double theta = 10000.0;           // when the config has none
  bool has_partial_rotary = false;  // the family may rotate a part of a head only
  double partial_rotary = 1.0;      // when the config has none
  // Families whose layers with a window have frequencies of their own: parameters by layer type, or
  // rope_local_base_freq, without scaling.
  bool is_by_window = false;
  bool has_window = false;
  double local_theta = 10000.0;
};

// Reads rope_parameters (transformers 5) or rope_theta and rope_scaling (4), with the precedence of
// RotaryEmbeddingConfigMixin in modeling_rope_utils.py, and computes inverse frequencies and
// amplitude for the types default, linear, llama3 and yarn in float32, operation by operation as
// the functions of that file do. Other types, and keys that no known type has, are refused. Keys
// without effect on the type are named in `warnings`.
RopeSpec ReadRope(ConfigReader* config, const RopeQuery& query, std::vector<std::string>* warnings);

}  // namespace arn::convert
