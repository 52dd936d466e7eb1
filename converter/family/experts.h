// Layers with experts: how they are chosen and weighed, and their shared expert.
#pragma once

#include "converter/family/decoder_spec.h"
#include "converter/family/family.h"
#include "converter/hf/config_reader.h"

namespace arn::convert {

// True if the number of experts is 0. The other keys of experts then have no effect.
bool LacksExperts(const Family& family, ConfigReader* config);

// Returns the layer type with experts that belongs to `kind`, which is without.
LayerKindSpec WithExperts(const Family& family, ConfigReader* config, LayerKindSpec kind);

}  // namespace arn::convert
