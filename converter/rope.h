// Rotary position embeddings: from a config's keys to the table that the runtime multiplies
// positions with.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "converter/decoder_spec.h"
#include "converter/hf/config_reader.h"

namespace arn::convert {

// Reads rope_parameters (transformers 5) or rope_theta and rope_scaling (4), with the precedence of
// RotaryEmbeddingConfigMixin in modeling_rope_utils.py, and computes inverse frequencies and
// amplitude for the types default, linear, llama3 and yarn in float32, operation by operation as
// the functions of that file do. Other types, and keys that no known type has, are refused. Keys
// without effect on the type are named in `warnings`.
RopeSpec ReadRope(ConfigReader* config, uint32_t head_dim, uint32_t max_context,
                  std::vector<std::string>* warnings);

}  // namespace arn::convert
