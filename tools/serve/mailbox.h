// Mailbox: what the scheduler hands to the HTTP thread of a request. The scheduler never waits for
// a client: it leaves a reply alone while its box is full.
#pragma once

#include <arenite/arenite.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tools/serve/api_error.h"

namespace arn::serve {

struct Event {
  enum class Kind : uint8_t {
    kStarted,  // the prompt is being computed: errors in what was asked have come before
    kText,
    kReasoning,
    kCallBegin,  // text: the name
    kCallId,
    kCallArguments,
    kCallEnd,
    kToken,   // a token's log-probabilities
    kFinish,  // the last one of a choice
    kError    // the last one of all
  };
  Kind kind = Kind::kStarted;
  uint32_t choice = 0;
  std::string text;
  int32_t id = -1;                                                     // kToken
  float logprob = 0;                                                   // kToken
  std::vector<arn_token_logprob> top = {};                             // kToken
  uint32_t finish = ARN_FINISH_NONE;                                   // kFinish
  uint32_t n_prompt = 0, n_cached = 0, n_tokens = 0, n_reasoning = 0;  // kFinish
  std::optional<ApiError> error = {};                                  // kError
};

class Mailbox {
 public:
  static constexpr size_t kFullBytes = 256 * 1024;

  // ---- the scheduler's side
  void Put(Event event);
  // Ends the request with an error where there is no memory for an event.
  void Break();
  bool IsFull() const;
  // The client has gone, or the server gave up on it.
  bool IsClosed() const;

  // ---- the HTTP thread's side
  // Waits at most `time`. Returns nullopt if nothing came.
  std::optional<Event> Take(std::chrono::milliseconds time);
  void Close();

 private:
  mutable std::mutex mutex_;
  std::condition_variable came_;
  std::deque<Event> events_;
  size_t bytes_ = 0;
  bool is_closed_ = false;
  bool is_broken_ = false;
};

}  // namespace arn::serve
