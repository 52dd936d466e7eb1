// Transcriber: samples in, segments of text with times out, over one sequence of a session. Lives
// inside its own memory block and allocates nothing after Create().
//
//   samples --LogMel--> features --session--> encoder output, logits --ChooseToken--> ids
//     --JudgeWindow, CutSegments--> segments --tokenizer--> text
//
// With words the weights of some heads of cross-attention are recorded as the tokens run:
//
//   weights --AlignTokens--> a row of audio for each id;  ids --JoinWords--> words
//
// Follows transformers' WhisperGenerationMixin.generate (models/whisper/generation_whisper.py).
// Long audio goes window by window; each begins where the last finished segment ended. A window
// that would begin behind the last sample is left out: transformers transcribes the silence that
// short audio is padded with.
//
// Models that take the samples themselves write no times: each window is a segment, and long audio
// is cut where it is quietest (sample_windows.h).
#pragma once

#include <cstdint>

#include "platform/base/diag.h"
#include "platform/base/span.h"
#include "runtime/audio/log_mel.h"
#include "runtime/sampling/random.h"
#include "runtime/session/session.h"
#include "runtime/transcription/align_tokens.h"
#include "runtime/transcription/segments.h"
#include "runtime/transcription/token_rules.h"
#include "runtime/transcription/transcriber_plan.h"
#include "runtime/transcription/window_trust.h"
#include "runtime/transcription/words.h"

namespace arn {

// How the tokens of a window were chosen.
struct WindowRating {
  float temperature = 0.0f;
  float logprob = 0.0f;    // mean of the tokens and the end; 0: not computed
  float no_speech = 0.0f;  // probability that nothing is said; 0: not computed
};

// Views are valid during the callback.
struct Segment {
  double start_s = 0.0;
  double end_s = 0.0;       // not behind the audio's end
  StringView text;          // UTF-8 as the tokenizer decodes it; empty without a tokenizer
  Span<const int32_t> ids;  // with the times around the text
  Span<const Word> words;   // if they were asked for
  WindowRating window;
};

struct TranscribeRequest {
  StringView language;  // "en"; empty: detected, if the model has languages
  bool translates = false;
  bool has_timestamps = true;  // if the model writes times
  bool has_words = false;
  // 0: the likeliest tokens are taken; else they are drawn, from logits divided by it.
  float temperature = 0.0f;
  // Increases a window's temperature, up to 1, until `trust` keeps its tokens; 0: the first are
  // kept.
  float temperature_step = 0.0f;
  uint64_t seed = 0;
  TrustRules trust;
  // Text before the speech: of every window, or of the first if the others have what was written
  // before them.
  Span<const int32_t> prompt_ids;
  bool has_previous = false;  // windows have what was written before them
  // Called for each segment, and at the beginning of each window and at the end with the samples
  // that are done. A non-zero result ends the call with kCancelled. Either may be null.
  int32_t (*on_segment)(void* user, const Segment& segment) = nullptr;
  int32_t (*on_progress)(void* user, uint64_t done, uint64_t total) = nullptr;
  void* user = nullptr;
};

struct TranscribeResult {
  const char* language = "";          // of the model's; "": it has none
  float language_probability = 0.0f;  // among the model's languages; 1 if it was given
  uint32_t n_windows = 0;
  uint32_t n_segments = 0;
  uint64_t n_tokens = 0;   // chosen, without those that end windows
  uint32_t n_retries = 0;  // of windows, at a higher temperature
  uint32_t n_silent = 0;   // windows left out
};

class Transcriber {
 public:
  // Builds a transcriber in `block`, which has plan.total_bytes, aligned to kSliceAlign. `pages`:
  // what Destroy() releases; empty: the caller's memory. The session must outlive it, and its
  // options are those of the plan.
  static Transcriber* Create(Session* session, const TranscriberPlan& plan, Span<std::byte> block,
                             Span<std::byte> pages);
  // Accepts null.
  static void Destroy(Transcriber* transcriber);

  // Transcribes samples f32 at kSampleRate. *out is filled on failure, too. kBadArgument: no
  // sample, one that is not finite, a language that the model does not have, or an option out of
  // its range. kUnsupported: the model does not translate, has no token for silence or for text
  // before a window, or words of a session whose backend keeps its values on a device.
  // kBadState: words, and the plan has no memory for them. kCancelled: by a callback or the
  // session.
  Status Run(Span<const float> pcm, const TranscribeRequest& request, TranscribeResult* out);

  // Clears the last error. kBadState within a callback.
  Status Enter();
  Diag* diag() { return &diag_; }
  const Diag& diag() const { return diag_; }

 private:
  struct Job;  // state of a running call

  Transcriber(Session* session, const TranscriberPlan& plan, Span<std::byte> block,
              Span<std::byte> pages);

  Status Check(const Job& job);
  Status CheckDecoding(const TranscribeRequest& request);
  // Returns the largest energy of all frames. Leaves the energies of audio of one window.
  float Largest(const PaddedAudio& audio);
  // Gives the encoder the frames from `frame` on, and zeros behind the last one.
  Status Encode(const Job& job, uint64_t frame);
  // Finds what every window's prompt ends with. REQUIRES: the first window is encoded.
  Status FindTask(Job* job);
  // Finds the likeliest language after the start token.
  Status DetectLanguage(Job* job, SpeechLanguage* out);
  Status FindLanguage(StringView name, SpeechLanguage* out);
  // Writes the window's prompt: the text before it and the task.
  void MakePrompt(Job* job);
  // Chooses the tokens of a window that is encoded, again until they are trusted.
  Status Decode(Job* job);
  // Chooses them once, at the job's temperature. `is_first`: of the window.
  Status Generate(Job* job, bool is_first);
  // Runs the prompt, and finds the probability that nothing is said if the request needs it.
  Status RunPrompt(Job* job);
  Status RunWindows(Job* job);
  // Runs the windows of a model that takes samples.
  Status RunSampleWindows(Job* job);
  Status EncodeSamples(Span<const float> pcm);
  Status Emit(Job* job, const SegmentPart& part);
  // `first`: the segment's first id in the window.
  Status EmitSegment(Job* job, size_t first, Segment* segment);
  Status ReportProgress(const Job& job, uint64_t done);
  // Joins the ids to text, and its words if the job has some; their times are not set.
  Status TextOf(const Job& job, Segment* segment);
  // Sets the rows of audio with which the window's n tokens begin, from the weights of those that
  // ran.
  void Align(const Job& job, uint32_t n, HeardWeights weights);
  // Sets the times of a segment's words. `first`: its first id in the window.
  void TimeWords(const Job& job, size_t first, Segment* segment);
  // Seconds of a frame of the window, at most the audio's length.
  static double SecondsOf(const Job& job, uint32_t frame);
  // Copies the session's message.
  Status FromSession(Status status);
  template <typename T>
  Span<T> As(const Slice& slice) const {
    return {reinterpret_cast<T*>(block_.data() + slice.offset),
            static_cast<size_t>(slice.bytes) / sizeof(T)};
  }

  Session& session_;
  const Model& model_;
  TranscriberPlan plan_;
  Span<std::byte> block_, pages_;
  LogMel mel_;
  TokenRules rules_;
  Diag diag_;
};

}  // namespace arn
