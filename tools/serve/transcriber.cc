#include "tools/serve/transcriber.h"

#include <exception>
#include <utility>

#include "tools/arenite/error.h"
#include "tools/arenite/sound.h"

namespace arn::serve {
namespace {

constexpr size_t kErrorBytes = 1024;

ApiError ServerIsEnding() { return Unavailable("the server is ending", "shutting_down"); }

arn_transcribe_info InfoOf(const tool::Model& model) {
  arn_transcribe_info info = ARN_TRANSCRIBE_INFO_INIT;
  arn_transcribe_get_info(model.get(), &info);
  return info;
}

// With memory for words if the model tells when they were heard.
arn_transcriber_options OptionsFor(const arn_transcribe_info& info) {
  arn_transcriber_options options = ARN_TRANSCRIBER_OPTIONS_INIT;
  options.words = info.has_word_times;
  return options;
}

uint64_t PlanBytes(const tool::Model& model, const arn_session_options& options,
                   const arn_transcriber_options& own) {
  char error[kErrorBytes] = "";
  uint64_t bytes = 0;
  if (arn_transcriber_plan(model.get(), &options, &own, error, sizeof error, &bytes) != ARN_OK) {
    throw tool::Error(model.path() + ": " + error);
  }
  return bytes + model.Plan(options).total_bytes;
}

std::vector<float> SamplesOf(const std::string& bytes) {
  try {
    return tool::ReadSoundAt(ARN_SAMPLE_RATE, bytes, "file");
  } catch (const tool::Error& error) {
    throw ApiError(400, "invalid_request_error", error.what(), "file");
  }
}

// Receives the segments of a call. An exception must not pass through the library.
struct Receiver {
  Transcription* to;
  std::exception_ptr failure = nullptr;

  static int32_t OnSegment(void* user, const arn_segment* segment) {
    auto& self = *static_cast<Receiver*>(user);
    try {
      self.to->Add(tool::CopySegment(*segment));
    } catch (...) {
      self.failure = std::current_exception();
      return 1;
    }
    return self.to->IsClosed() ? 1 : 0;
  }
};

}  // namespace

bool Transcription::HasBegun(std::chrono::milliseconds time) {
  std::unique_lock<std::mutex> lock(mutex_);
  came_.wait_for(lock, time, [&] { return has_begun_ || news_.error; });
  if (!has_begun_ && news_.error) throw ApiError(*news_.error);
  return has_begun_;
}

Transcription::News Transcription::Take(std::chrono::milliseconds time) {
  std::unique_lock<std::mutex> lock(mutex_);
  came_.wait_for(lock, time,
                 [&] { return !news_.segments.empty() || news_.result || news_.error; });
  return std::exchange(news_, {});
}

void Transcription::Begin() {
  const std::lock_guard<std::mutex> lock(mutex_);
  has_begun_ = true;
  came_.notify_one();
}

void Transcription::Add(tool::TranscriptSegment segment) {
  const std::lock_guard<std::mutex> lock(mutex_);
  news_.segments.push_back(std::move(segment));
  came_.notify_one();
}

void Transcription::End(SpeechResult result) {
  const std::lock_guard<std::mutex> lock(mutex_);
  news_.result = std::move(result);
  came_.notify_one();
}

void Transcription::Fail(const ApiError& error) {
  const std::lock_guard<std::mutex> lock(mutex_);
  news_.error = error;
  came_.notify_one();
}

bool Transcription::IsClosed() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return is_closed_;
}

void Transcription::Close() {
  const std::lock_guard<std::mutex> lock(mutex_);
  is_closed_ = true;
}

Transcriber::Transcriber(const tool::Model& model, std::string name,
                         const arn_session_options& options)
    : name_(std::move(name)),
      info_(InfoOf(model)),
      bytes_(PlanBytes(model, options, OptionsFor(info_))),
      model_(model),
      session_(model, options),
      transcriber_(tool::NewTranscriber(model, session_, OptionsFor(info_))) {
  const char* language = nullptr;
  for (uint32_t i = 0; arn_transcribe_language(model.get(), i, &language) == ARN_OK; ++i) {
    languages_.emplace_back(language);
  }
  worker_ = std::thread([this] { Work(); });
}

Transcriber::~Transcriber() { Stop(); }

void Transcriber::Submit(std::shared_ptr<Transcription> transcription) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (is_stopping_) throw ServerIsEnding();
  waiting_.push_back(std::move(transcription));
  changed_.notify_one();
}

void Transcriber::Cancel(const std::shared_ptr<Transcription>& transcription) {
  transcription->Close();
  const std::lock_guard<std::mutex> lock(mutex_);
  if (running_ == transcription) arn_session_cancel(session_.get());
}

void Transcriber::Stop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_stopping_ = true;
    if (running_) arn_session_cancel(session_.get());
    for (const auto& transcription : waiting_) transcription->Fail(ServerIsEnding());
    waiting_.clear();
    changed_.notify_one();
  }
  if (worker_.joinable()) worker_.join();
}

void Transcriber::Work() {
  for (;;) {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      changed_.wait(lock, [&] { return is_stopping_ || !waiting_.empty(); });
      if (is_stopping_) return;
      running_ = std::move(waiting_.front());
      waiting_.pop_front();
      arn_session_clear_cancel(session_.get());
    }
    if (!running_->IsClosed()) {
      try {
        Transcribe(running_.get());
      } catch (const ApiError& error) {
        running_->Fail(error);
      } catch (const std::bad_alloc&) {
        running_->Fail(Unavailable("out of memory", "out_of_memory"));
      } catch (const std::exception& error) {
        running_->Fail({500, "server_error", error.what()});
      }
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    running_ = nullptr;
  }
}

void Transcriber::Transcribe(Transcription* transcription) {
  SpeechRequest* request = transcription->request();
  const std::vector<float> samples = SamplesOf(request->sound);
  std::string().swap(request->sound);
  transcription->Begin();
  Receiver receiver = {transcription};
  arn_transcribe_options options = request->decoding;
  const std::vector<int32_t> prompt = tool::SpeechPromptIds(model_, request->prompt);
  options.prompt_ids = prompt.data();
  options.n_prompt_ids = static_cast<uint32_t>(prompt.size());
  if (!request->language.empty()) options.language = request->language.c_str();
  options.translate = request->translates ? 1 : 0;
  options.words = request->has_words ? 1 : 0;
  options.user = &receiver;
  options.on_segment = Receiver::OnSegment;
  arn_transcribe_result result = ARN_TRANSCRIBE_RESULT_INIT;
  const arn_status status =
      arn_transcribe(transcriber_.get(), samples.data(), samples.size(), &options, &result);
  if (receiver.failure) std::rethrow_exception(receiver.failure);
  if (status == ARN_CANCELLED) throw ServerIsEnding();
  if (status == ARN_UNSUPPORTED || status == ARN_BAD_ARGUMENT) {
    throw ApiError(status == ARN_UNSUPPORTED ? 501 : 400, "invalid_request_error",
                   arn_transcriber_last_error(transcriber_.get()));
  }
  if (status != ARN_OK) {
    throw ApiError(500, "server_error", arn_transcriber_last_error(transcriber_.get()));
  }
  SpeechResult found;
  found.language = result.language == nullptr ? "" : result.language;
  found.seconds = static_cast<double>(samples.size()) / ARN_SAMPLE_RATE;
  found.n_tokens = result.n_tokens;
  transcription->End(std::move(found));
}

}  // namespace arn::serve
