// TranscriptionSpec: the tokens with which a model is asked to write speech down, checked.
#pragma once

#include <cstdint>

#include "platform/base/diag.h"
#include "platform/base/span.h"
#include "platform/base/status.h"
#include "runtime/model/model.h"

namespace arn {

struct TranscriptionSpec {
  static constexpr int32_t kNoToken = -1;

  int32_t start_id = 0;          // begins the prompt
  int32_t end_id = 0;            // ends a window
  int32_t no_timestamps_id = 0;  // ids above it are times
  int32_t transcribe_id = kNoToken;
  int32_t translate_id = kNoToken;
  int32_t previous_id = kNoToken;  // begins the text before a window
  uint32_t n_languages = 0;
  uint32_t latest_first_id = UINT32_MAX;  // latest time that a window may begin with
  // The features are the samples themselves. Such models write no times, and have no tokens for
  // language and task.
  bool takes_samples = false;
  uint32_t window_frames = 0;  // of features
  uint32_t n_mels = 0;
  uint32_t window_samples = 0;     // longest audio that is heard at once
  uint32_t least_samples = 0;      // shorter audio is followed by zeros
  uint32_t n_alignment_heads = 0;  // 0: words have no times
  uint32_t alignment_median = 0;   // odd, at most kMaxMedian

  int32_t first_time_id() const { return no_timestamps_id + 1; }
  // Its probability after the start token is that of silence. As transformers has it (generate's
  // no_speech_threshold), the token before no_timestamps_id.
  int32_t no_speech_id() const { return no_timestamps_id - 1; }
};

// kUnsupported: the model does not write speech down. kBadBundle names what is wrong.
Status ReadTranscription(const Model& model, TranscriptionSpec* out, Diag* diag);

// A language of the model, which its strings live as long as.
struct SpeechLanguage {
  const char* name = "";
  int32_t id = TranscriptionSpec::kNoToken;
};
// REQUIRES: ReadTranscription() succeeded, index < n_languages.
SpeechLanguage LanguageAt(const Model& model, uint32_t index);

// A head of cross-attention whose weights tell when a token was heard.
struct AlignmentHead {
  uint32_t layer = 0, head = 0;
};
// REQUIRES: ReadTranscription() succeeded, index < n_alignment_heads.
AlignmentHead AlignmentHeadAt(const Model& model, uint32_t index);

}  // namespace arn
