// Transcriber: writes down the speech of requests, one after another, on a thread of its own.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tools/arenite/model.h"
#include "tools/arenite/transcript.h"
#include "tools/serve/api_error.h"

namespace arn::serve {

struct SpeechRequest {
  std::string sound;     // bytes of a WAV or FLAC file
  std::string language;  // "": found in the first window
  bool translates = false;
  bool has_words = false;
  std::string prompt;  // text before the speech
  // Its numbers say how tokens are chosen and which windows are distrusted.
  arn_transcribe_options decoding = ARN_TRANSCRIBE_OPTIONS_INIT;
};

struct SpeechResult {
  std::string language;  // "": the model has one, which is not named
  double seconds = 0;    // of sound
  uint64_t n_tokens = 0;
};

// Passes what was asked and found between the thread of a request and that of the transcriber.
class Transcription {
 public:
  explicit Transcription(SpeechRequest request) : request_(std::move(request)) {}

  // ---- the request's side
  struct News {
    std::vector<tool::TranscriptSegment> segments;  // since the last call
    std::optional<SpeechResult> result;             // it has ended
    std::optional<ApiError> error;                  // it has ended, too
  };
  // Waits until the sound has been read, at most `time`. Returns false if it has not. Throws what
  // was wrong with it.
  bool HasBegun(std::chrono::milliseconds time);
  // Waits for news, at most `time`.
  News Take(std::chrono::milliseconds time);

  // ---- the transcriber's side
  SpeechRequest* request() { return &request_; }
  void Begin();
  void Add(tool::TranscriptSegment segment);
  void End(SpeechResult result);
  void Fail(const ApiError& error);
  // The client has gone.
  bool IsClosed() const;
  void Close();

 private:
  SpeechRequest request_;
  mutable std::mutex mutex_;
  std::condition_variable came_;
  News news_;
  bool has_begun_ = false, is_closed_ = false;
};

class Transcriber {
 public:
  // `model` must outlive it. Throws tool::Error if the model does not write speech down.
  Transcriber(const tool::Model& model, std::string name, const arn_session_options& options);
  ~Transcriber();

  const std::string& name() const { return name_; }
  const std::vector<std::string>& languages() const { return languages_; }
  bool can_translate() const { return info_.can_translate != 0; }
  bool has_timestamps() const { return info_.has_timestamps != 0; }
  bool has_word_times() const { return info_.has_word_times != 0; }
  // Returns all memory of the session and the transcriber.
  uint64_t bytes() const { return bytes_; }

  void Submit(std::shared_ptr<Transcription> transcription);
  // Ends a transcription whose client has gone, within one step of the model.
  void Cancel(const std::shared_ptr<Transcription>& transcription);
  // Ends all, with an error for those who wait. Call it from one thread.
  void Stop();

 private:
  void Work();
  void Transcribe(Transcription* transcription);

  const std::string name_;
  const arn_transcribe_info info_;
  std::vector<std::string> languages_;
  const uint64_t bytes_;
  const tool::Model& model_;
  tool::Session session_;
  tool::TranscriberPtr transcriber_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Transcription>> waiting_;
  std::shared_ptr<Transcription> running_;
  bool is_stopping_ = false;
  std::thread worker_;
};

}  // namespace arn::serve
