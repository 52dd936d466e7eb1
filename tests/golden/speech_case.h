// Loads the cases of data/speech, described in make_speech_goldens.py, and transcribes.
#pragma once

#include <arenite/arenite.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/golden/golden_case.h"

namespace arn::test {

struct SpeechSegment {
  double start_s = 0;
  double end_s = 0;
  std::vector<int32_t> ids;
  std::string text;
  std::vector<double> times;    // of each id; empty: the checkpoint has no heads for them
  std::vector<arn_word> words;  // as found, if they were asked for
  float temperature = 0, logprob = 0, no_speech = 0;  // as found
};

// Fields of arn_transcribe_options, and how transformers rated the windows that it kept.
struct SpeechDecoding {
  float logprob_threshold = 0, no_speech_threshold = 0;
  bool conditions_on_previous = false;
  std::vector<int32_t> prompt_ids;
  struct Rating {
    double logprob, no_speech;
  };
  std::vector<Rating> ratings;  // of the segments: each is a window
  uint32_t n_silent = 0;
};

struct SpeechRun {
  size_t n_samples = 0;
  std::string given;     // language; "": to be found
  std::string language;  // the result's
  bool translates = false;
  bool has_timestamps = true;
  uint32_t n_windows = 0;
  std::vector<SpeechSegment> segments;
  SpeechDecoding decoding;
};

struct SpeechCase {
  GoldenCase golden;  // its config and tensors
  std::vector<SpeechRun> runs;
};
SpeechCase LoadSpeech(const std::string& name);

// `tokenizer`: a tokenizer.json of the source tree, or "" for none. Returns false after a test
// failure.
bool ConvertSpeech(const SpeechCase& c, const std::string& tokenizer,
                   const std::filesystem::path& folder, const std::filesystem::path& bundle,
                   const std::vector<std::string>& options);

struct DestroyTranscriber {
  void operator()(arn_transcriber* transcriber) const { arn_transcriber_destroy(transcriber); }
};
using TranscriberPtr = std::unique_ptr<arn_transcriber, DestroyTranscriber>;
// Returns null and fails the test with the library's message on error.
TranscriberPtr NewTranscriber(arn_session* session, void* memory = nullptr, uint64_t bytes = 0,
                              const arn_transcriber_options* options = nullptr);
// With memory for words.
TranscriberPtr NewWordTranscriber(arn_session* session);

// The options that ask for what the run did. Views of the run.
arn_transcribe_options OptionsOf(const SpeechRun& run);

SpeechSegment CopyOf(const arn_segment& segment);
// Transcribes MakeSignal(run.n_samples).
struct SpeechFound {
  arn_status status = ARN_OK;
  arn_transcribe_result result = ARN_TRANSCRIBE_RESULT_INIT;
  std::vector<SpeechSegment> segments;
};
SpeechFound Transcribe(arn_transcriber* transcriber, const SpeechRun& run, bool has_words = false);
void ExpectFound(const SpeechRun& run, const SpeechFound& found);

}  // namespace arn::test
