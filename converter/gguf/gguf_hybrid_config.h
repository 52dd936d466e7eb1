// The metadata of architectures whose layers differ, as config.json: layers with a state, experts
// in some layers, per-layer sizes.
#pragma once

#include "converter/family/family.h"
#include "converter/gguf/gguf_config.h"

namespace arn::convert {

// Returns the equivalent of config.json. Does not refuse unread keys.
nlohmann::json MakeHybridConfig(const GgufArchitecture& row, const Family& family,
                                const GgufFacts& facts, ConfigReader* metadata);

}  // namespace arn::convert
