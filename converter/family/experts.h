// Layers with experts: how they are chosen and weighed, and their shared expert.
#pragma once

#include "converter/family/decoder_spec.h"
#include "converter/family/family.h"
#include "converter/hf/config_reader.h"

namespace arn::convert {

// Returns the layer type with experts that belongs to `kind`, which is without.
LayerKindSpec WithExperts(const Family& family, ConfigReader* config, LayerKindSpec kind);

}  // namespace arn::convert
