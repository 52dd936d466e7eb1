// Reads the head that scores texts (transformers' ..ForSequenceClassification).
#pragma once

#include <cstdint>

#include "converter/family/decoder_spec.h"
#include "converter/family/family.h"
#include "converter/hf/config_reader.h"

namespace arn::convert {

// Scores are sigmoids if there is one label, unless the config names another activation, as in
// sentence-transformers' CrossEncoder. Throws ConvertError.
PoolingSpec ReadScoreHead(const ScoreHead& head, ConfigReader* config, uint32_t hidden);

}  // namespace arn::convert
