// Decides what becomes of a window's tokens: kept, written down again at a higher temperature, or
// left out as silence. As transformers' WhisperGenerationMixin._need_fallback, with whisper.cpp's
// entropy (whisper_sequence_score) in the place of the ratio by which zlib compresses the tokens:
// both find text that repeats itself, and this one needs no memory.
#pragma once

#include <cstdint>

#include "platform/base/span.h"

namespace arn {

struct TrustRules {
  float logprob = 0.0f;    // least mean log-probability of the tokens; 0: any
  float entropy = 0.0f;    // least entropy of the last tokens; 0: any
  float no_speech = 0.0f;  // a less likely window of a larger probability is silence; 0: none is

  bool need_logprob() const { return logprob < 0.0f; }
};

enum class Trust : uint8_t { kKept, kRetried, kSilent };

// ids: of the window, without the end. logprob: the mean of theirs and the end's. no_speech: the
// probability that nothing is said.
Trust JudgeWindow(const TrustRules& rules, Span<const int32_t> ids, double logprob,
                  double no_speech);

// Returns the entropy in nats of the frequencies of the last 32 ids: 0 if they are all the same,
// log(32) if no two are. REQUIRES: ids is not empty.
double TailEntropy(Span<const int32_t> ids);

}  // namespace arn
