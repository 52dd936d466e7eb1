// Transcriber::Job: the state of a running call.
#pragma once

#include "runtime/transcription/previous_text.h"
#include "runtime/transcription/transcriber.h"

namespace arn {

struct Transcriber::Job {
  PaddedAudio audio;
  const TranscribeRequest& request;
  TranscribeResult* out;
  PreviousText previous;
  Random random;
  bool has_energies = false;  // of the first window, which is the only one
  float largest = 0.0f;
  int32_t task[TranscriberPlan::kTaskTokens] = {};  // begins with the start token
  uint32_t n_task = 0;
  uint64_t frame = 0;      // where the window begins
  bool has_spaces = true;  // between words
  // Describe the window.
  Span<const int32_t> prompt = {};
  Span<const int32_t> ids = {};
  WindowRating rating = {};
};

}  // namespace arn
