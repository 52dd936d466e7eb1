// Sampling options of a checkpoint beyond those that have a field of their own in the bundle.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "converter/hf/config_reader.h"

namespace arn::convert {

// An option that is on, as fbs::SamplingOption has it.
struct SamplingEntry {
  uint32_t id = 0;  // in runtime/sampling/options.def
  std::vector<uint32_t> words;

  bool operator==(const SamplingEntry&) const = default;
};

// Reads every option of runtime/sampling/options.def whose name is a key of `from`, and those that
// transformers writes in another form: sequence_bias, bad_words_ids, forced_bos_token_id (only if
// the model has decoder start tokens: elsewhere transformers forces nothing after a prompt) and
// forced_eos_token_id. In the table's order. ids: reads a list of token ids. Throws ConvertError
// for an invalid value.
struct SamplingSource {
  ConfigReader* from = nullptr;
  uint32_t vocab = 0;
  bool has_start_ids = false;
  std::function<std::vector<uint32_t>(const char* key)> ids;
};
std::vector<SamplingEntry> ReadSamplingOptions(const SamplingSource& source);

}  // namespace arn::convert
