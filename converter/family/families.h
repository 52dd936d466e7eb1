// Reads configs into specs, by the rows of converter/family/family_table.cc. No code after this
// depends on the model family: it reads a DecoderSpec.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "converter/family/decoder_spec.h"
#include "converter/family/rope.h"
#include "nlohmann/json_fwd.hpp"

namespace arn::convert {

// Maps a config's name to the activation, as transformers' ACT2FN (activations.py); nothing for an
// unknown name.
std::optional<Activation> ActivationOf(const std::string& name);

// Reads the contents of config.json. `label` names the file in errors. Adds a sentence to
// `warnings` for each odd but harmless setting. Throws ConvertError for an unknown architecture,
// and for a key that is unknown or that changes the computation in an unsupported way, unless
// `ignored_keys` has it. `scaling` (null: none) extends the context by its factor.
DecoderSpec ReadDecoderSpec(const nlohmann::json& config, const std::string& label,
                            std::vector<std::string>* warnings,
                            const std::vector<std::string>& ignored_keys = {},
                            const RopeScaling* scaling = nullptr);

// Reads n_heads, n_kv_heads, head_dim, window and mixer of each layer and nothing else, for memory
// plans. Returns nullopt for families that cannot be converted. Throws ConvertError.
std::optional<std::vector<LayerKindSpec>> ReadLayerHeads(const nlohmann::json& config,
                                                         const std::string& label);

}  // namespace arn::convert
