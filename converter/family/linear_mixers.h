// Layers with linear attention: Mamba-2, and the gated delta rule.
#pragma once

#include <cstdint>
#include <vector>

#include "converter/family/decoder_spec.h"
#include "converter/family/family.h"
#include "converter/hf/config_reader.h"

namespace arn::convert {

// Returns the mixer's fields. The other fields have their defaults. REQUIRES: family.linear.
LayerKindSpec ReadLinearAttention(const Family& family, ConfigReader* config, uint32_t hidden);

// Returns, for each layer, whether it has linear attention. REQUIRES: family.linear.
std::vector<bool> LayersWithLinearAttention(const Family& family, ConfigReader* config,
                                            uint32_t n_layers);

// Returns, for each layer, whether it is a feed-forward block: LinearLayers::kBlocks.
std::vector<bool> LayersWithFeedForward(ConfigReader* config);

// Marks the layers that are a block of experts, of LinearLayers::kBlocks.
std::vector<bool> BlocksWithExperts(ConfigReader* config);

}  // namespace arn::convert
