// Residual streams (AltUp), low-rank residuals (LAuReL), sparse gates, and feed-forward widths by
// layer, as Gemma3nTextConfig has them.
#pragma once

#include <cstdint>
#include <vector>

#include "converter/family/decoder_spec.h"
#include "converter/family/family.h"
#include "converter/hf/config_reader.h"

namespace arn::convert {

StreamsSpec ReadStreams(const Family& family, ConfigReader* config);

// Gives a layer type its low-rank residual, and the factor of the sum with it.
void ReadLaurel(const Family& family, ConfigReader* config, LayerKindSpec* kind);

// A layer's part of activation_sparsity_pattern.
struct GateThreshold {
  bool exists = false;
  float deviations = 0.0f;  // above the mean
};
std::vector<GateThreshold> GateThresholds(const Family& family, ConfigReader* config,
                                          uint32_t n_layers);

// Returns the feed-forward widths of the layers, of FfnRule::kByLayer.
std::vector<uint32_t> FfnWidths(const Family& family, ConfigReader* config, uint32_t n_layers);

}  // namespace arn::convert
