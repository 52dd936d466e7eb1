// Reads heads: those that score texts (transformers' ..ForSequenceClassification), and what lies
// before the head of a model that makes text.
#pragma once

#include <cstdint>

#include "converter/family/decoder_spec.h"
#include "converter/family/family.h"
#include "converter/hf/config_reader.h"

namespace arn::convert {

// Reads what makes a model of vectors or scores: direction, token types, the offset of positions,
// and the head of scores. REQUIRES: the spec's hidden, max_context and position_offset are read.
void ReadPooled(const Family& family, ConfigReader* config, DecoderSpec* spec);

// Scores are sigmoids if there is one label, unless the config names another activation, as in
// sentence-transformers' CrossEncoder. Throws ConvertError.
PoolingSpec ReadScoreHead(const ScoreHead& head, ConfigReader* config, uint32_t hidden);

// Reads the dense layer between the final norm and the head of a model that makes text.
void ReadHeadDense(const Family& family, ConfigReader* config, DecoderSpec* spec);

}  // namespace arn::convert
