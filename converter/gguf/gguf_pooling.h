// Reads how a GGUF file makes vectors of texts.
#pragma once

#include <string>
#include <vector>

#include "converter/family/decoder_spec.h"
#include "converter/gguf/architectures.h"
#include "converter/gguf/gguf_config.h"
#include "converter/hf/config_reader.h"

namespace arn::convert {

// Sets spec->pooling: the mode of ARCHITECTURE.pooling_type, the dense layers dense_2 and dense_3,
// and vectors of length 1, which llama.cpp makes by default; or the head that scores texts, cls and
// cls.output, of RoBERTa, XLM-R and DistilBERT. A model that makes no text and has no
// pooling_type gets the mean, with a warning; one that makes text gets no pooling. Throws
// ConvertError for pooling types that are not supported.
void ReadGgufPooling(const GgufArchitecture& row, const GgufFacts& facts, ConfigReader* metadata,
                     DecoderSpec* spec, std::vector<std::string>* warnings);

}  // namespace arn::convert
