// Rotary position embeddings: computes the runtime's frequency table from a config.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "converter/family/decoder_spec.h"
#include "converter/hf/config_reader.h"

namespace arn::convert {

// --rope: scaling that the config does not have, for contexts beyond the one it was trained for.
struct RopeScaling {
  std::string type;  // "linear" or "yarn"
  double factor = 1.0;
};

struct RopeQuery {
  uint32_t head_dim = 0;
  uint32_t max_context = 0;
  double theta = 10000.0;               // if the config has none
  bool has_partial_rotary = false;      // the family may rotate only part of a head
  double partial_rotary = 1.0;          // if the config has none
  bool ignores_partial_rotary = false;  // rotates whole heads; refuses types but the default
  bool has_rotary_keys = false;         // rotary_pct and rotary_emb_base, the older names
  uint32_t rotary_dim = 0;              // 0: by the fraction
  // Not 0: head_dim is the rotated part of heads of this size, and partial_rotary_factor, if given,
  // says the same. Refuses the default type, which transformers computes for whole heads.
  uint32_t part_of = 0;
  // Families whose windowed layers have their own frequencies: parameters by layer type, or
  // rope_local_base_freq, without scaling.
  bool is_by_window = false;
  bool is_by_type = false;  // with is_by_window: only parameters by layer type, with a rope_theta
  bool has_window = false;
  double local_theta = 10000.0;
  const char* default_parameters = nullptr;  // JSON, if the config has no parameter object
  bool has_longrope_only = false;            // "yarn" too means longrope; refuses other types
  bool has_alpha = false;                    // type dynamic: alpha scales the base
  // llama_4_scaling_beta, with original_max_position_embeddings as the step.
  bool has_query_temperature = false;
  bool has_mscales = false;  // longrope's amplitude: short_mscale and long_mscale, one number
  bool has_mrope = false;    // takes keys that have no effect on text
  bool ignores_outer_original = false;  // reads original_max_position_embeddings in the object only
  uint32_t default_original = 0;  // original_max_position_embeddings outside the object; 0: none
  // Refused if the config has a scaling of its own, or frequencies by layer type. Null: none.
  const RopeScaling* scaling = nullptr;

  // True if transformers takes another type in place of the default one.
  bool may_scale() const { return !is_by_window && !has_longrope_only && !ignores_partial_rotary; }
};

// Reads rope_parameters (transformers 5) or rope_theta and rope_scaling (4), with the precedence of
// RotaryEmbeddingConfigMixin in modeling_rope_utils.py. Computes inverse frequencies and amplitude
// for the types default, linear, dynamic, llama3, yarn and longrope in float32, in the same order
// of operations as that file. Refuses other types, and keys that no known type has. Lists keys
// without effect on the type in `warnings`.
RopeSpec ReadRope(ConfigReader* config, const RopeQuery& query, std::vector<std::string>* warnings);

}  // namespace arn::convert
