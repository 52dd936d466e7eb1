// TranscriberPlan: every byte of a transcriber, decided before any is allocated.
#pragma once

#include <cstdint>

#include "platform/base/diag.h"
#include "platform/base/layout.h"
#include "platform/base/status.h"
#include "runtime/memory/session_plan.h"
#include "runtime/model/model.h"
#include "runtime/transcription/transcription_spec.h"

namespace arn {

struct TranscriberOptions {
  uint32_t sequence = 0;   // of the session
  bool has_words = false;  // with memory to find when words were heard
};

struct TranscriberPlan {
  static constexpr uint32_t kTaskTokens = 4;  // start, language, task, no times

  TranscriberOptions options;
  TranscriptionSpec spec;
  uint32_t context_tokens = 0;  // prompt and tokens of a window
  uint32_t most_previous = 0;   // tokens of the text before a window; 0: there is none
  Slice object;                 // Transcriber
  Slice features;               // f32 [window_frames, n_mels], or [least_samples]
  Slice suppressed;             // a bit per id of the vocabulary
  Slice ids;                    // int32 [context_tokens], of a window
  Slice prompt;                 // int32 [most_previous + 1 + kTaskTokens], of a window
  Slice previous;               // int32 [most_previous]
  Slice text;                   // of a segment; empty without a tokenizer
  // The slices of words are empty without them.
  Slice weights;  // f32 [n_alignment_heads, context_tokens, max_rows of the encoder]
  Slice align_floats, align_steps;  // AlignScratch
  Slice token_rows;                 // u32 [context_tokens]: of the audio, of a window's tokens
  Slice words;                      // Word [context_tokens], of a segment
  uint64_t total_bytes = 0;
};

// `session`: the options of the session, without zeros. kUnsupported: the model does not write
// speech down. kBadArgument: the session has no such sequence, or is too small for a window.
Status PlanTranscriber(const Model& model, const SessionOptions& session,
                       const TranscriberOptions& options, TranscriberPlan* out, Diag* diag);

}  // namespace arn
