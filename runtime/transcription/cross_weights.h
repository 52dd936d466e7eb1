// CrossWeights: records how much each token of a window attends to each row of its audio, in the
// heads that tell when a token was heard. While a run attends to the audio, its queries and keys
// are in the session's memory, from which the weights are computed once more.
#pragma once

#include <cstdint>

#include "kernels/contract/backend.h"
#include "platform/base/status.h"
#include "runtime/session/session.h"
#include "runtime/transcription/align_tokens.h"
#include "runtime/transcription/transcription_spec.h"

namespace arn {

class CrossWeights {
 public:
  // Records into `weights` the tokens behind the first n_before of a sequence. n_tokens and n_rows
  // become those that were seen.
  CrossWeights(const Session& session, const TranscriptionSpec& spec, uint32_t n_before,
               HeardWeights weights)
      : session_(session), spec_(spec), n_before_(n_before), weights_(weights) {}

  // For Session::ObserveAttention(), with the object.
  static void Before(void* self, const RunArgs& args, Span<const Step> steps) {
    static_cast<CrossWeights*>(self)->Record(args, steps[0]);
  }
  const HeardWeights& weights() const { return weights_; }

 private:
  void Record(const RunArgs& args, const Step& step);
  // Records a head of the step.
  void RecordHead(const SequenceRows& rows, const Step& step, uint32_t head, uint32_t index);

  const Session& session_;
  const TranscriptionSpec& spec_;
  const uint32_t n_before_;
  HeardWeights weights_;
};

// Calls a recorder in the session's runs, for its own lifetime.
class CrossRecording {
 public:
  // recorder: null: does nothing.
  CrossRecording(Session* session, CrossWeights* recorder)
      : session_(*session), recorder_(recorder) {}
  ~CrossRecording() {
    if (recorder_ != nullptr) (void)session_.ObserveAttention(nullptr, nullptr);
  }
  CrossRecording(const CrossRecording&) = delete;
  CrossRecording& operator=(const CrossRecording&) = delete;
  Status Begin() {
    if (recorder_ == nullptr) return Status::kOk;
    return session_.ObserveAttention(CrossWeights::Before, recorder_);
  }

 private:
  Session& session_;
  CrossWeights* const recorder_;
};

}  // namespace arn
