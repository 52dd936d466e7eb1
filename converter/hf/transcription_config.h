// How a speech model writes down what it hears: the part of generation_config.json that
// transformers' WhisperGenerationMixin (generation_whisper.py) reads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "converter/hf/config_reader.h"

namespace arn::convert {

struct SpeechLanguage {
  static constexpr size_t kMaxNameBytes = 11;

  std::string name;  // "en"
  uint32_t id = 0;

  bool operator==(const SpeechLanguage&) const = default;
};

struct TranscriptionSpec {
  bool exists = false;
  uint32_t no_timestamps_id = 0;
  int32_t transcribe_id = -1;  // -1: the prompt names no task
  int32_t translate_id = -1;
  std::vector<SpeechLanguage> languages;  // empty: the prompt names none
  int32_t max_initial_timestamp = -1;     // -1: any time may come first

  bool operator==(const TranscriptionSpec&) const = default;
};

// Reads no_timestamps_token_id, lang_to_id, task_to_id, is_multilingual and
// max_initial_timestamp_index. Without the first there is no transcription; with is_multilingual
// false the prompt names neither language nor task. Throws ConvertError for an id that is not in
// the vocabulary, and for a value of another form.
TranscriptionSpec ReadTranscription(ConfigReader* from, uint32_t vocab);

}  // namespace arn::convert
