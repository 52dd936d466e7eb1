// Attention to some of the tokens, chosen by an indexer: only its dense case is supported.
#pragma once

#include <string>
#include <vector>

#include "converter/family/decoder_spec.h"
#include "converter/family/family.h"
#include "converter/hf/config_reader.h"

namespace arn::convert {

// Ends the context where attention becomes sparse.
void LimitContext(const Family& family, ConfigReader* config, DecoderSpec* spec,
                  std::vector<std::string>* warnings);

}  // namespace arn::convert
