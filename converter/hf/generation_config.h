// Generation defaults of a checkpoint: special ids and sampling.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "converter/hf/sampling_config.h"
#include "converter/hf/transcription_config.h"
#include "nlohmann/json_fwd.hpp"

namespace arn::convert {

struct GenerationSpec {
  bool do_sample = false;
  float temperature = 1.0f;
  uint32_t top_k = 0;  // 0: off
  float top_p = 1.0f;  // above 0
  float min_p = 0.0f;  // below 1
  std::vector<SamplingEntry> options;
  std::vector<uint32_t> eos_ids;
  std::vector<uint32_t> bos_ids;
  int32_t pad_id = -1;
  std::vector<uint32_t> start_ids;  // decoder start ids of an encoder-decoder
  TranscriptionSpec transcription;

  bool operator==(const GenerationSpec&) const = default;
};

// Sources of the defaults. `label` names the file in messages.
struct GenerationSources {
  const nlohmann::json* generation = nullptr;  // generation_config.json; null: absent
  std::string generation_label;
  const nlohmann::json* config = nullptr;  // config.json
  std::string config_label;
};

// Follows transformers. Takes each id from generation_config.json, else from config.json; a number
// or a list. Takes sampling from generation_config.json, or from config.json if there is no
// generation_config.json. Without do_sample decoding is greedy; the other settings of the draw are
// kept for callers that turn sampling on. Penalties and forbidden tokens apply in both cases.
//
// Treats ids outside the vocabulary as absent, with a warning unless they are -1. Warns about
// unsupported settings, with their value, unless the value has no effect, and about unknown keys.
// Throws ConvertError for an invalid value.
GenerationSpec ReadGeneration(const GenerationSources& sources, uint32_t vocab,
                              std::vector<std::string>* warnings);

// Same, with the folder's generation_config.json, if any.
GenerationSpec ReadGeneration(const std::filesystem::path& folder, const nlohmann::json& config,
                              const std::string& config_label, uint32_t vocab,
                              std::vector<std::string>* warnings);

}  // namespace arn::convert
