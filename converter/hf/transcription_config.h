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

// A head of cross-attention that tells when a token was heard.
struct AlignmentHead {
  uint16_t layer = 0, head = 0;

  bool operator==(const AlignmentHead&) const = default;
};

struct TranscriptionSpec {
  bool exists = false;
  uint32_t no_timestamps_id = 0;
  int32_t transcribe_id = -1;  // -1: the prompt names no task
  int32_t translate_id = -1;
  std::vector<SpeechLanguage> languages;       // empty: the prompt names none
  int32_t previous_id = -1;                    // begins the text before a window; -1: none
  int32_t max_initial_timestamp = -1;          // -1: any time may come first
  std::vector<AlignmentHead> alignment_heads;  // empty: words have no times
  uint32_t alignment_median = 7;               // rows of audio that their weights are filtered over

  bool operator==(const TranscriptionSpec&) const = default;
};

// Reads no_timestamps_token_id, lang_to_id, task_to_id, is_multilingual,
// max_initial_timestamp_index, prev_sot_token_id and alignment_heads, and of config.json
// median_filter_width. Without the first there is no transcription; with is_multilingual false the
// prompt names neither language nor task; without prev_sot_token_id it is the last but one of
// suppress_tokens, as in transformers. Warns of heads that the decoder does not have (distilled
// checkpoints may name those of their teacher) and takes none. Throws ConvertError for an id that
// is not in the vocabulary, and for a value of another form.
TranscriptionSpec ReadTranscription(ConfigReader* from, ConfigReader* config, uint32_t vocab,
                                    std::vector<std::string>* warnings);

}  // namespace arn::convert
