// EventRing: what has happened to requests since the caller looked last, oldest first.
#pragma once

#include <cstdint>

#include "platform/base/span.h"
#include "platform/base/status.h"

namespace arn {

enum class RequestEventKind : uint32_t {
  kStarted = 1,  // has a sequence
  kToken = 2,
  kEnded = 3,
};

struct RequestEvent {
  uint64_t request = 0;
  void* user = nullptr;
  RequestEventKind kind = RequestEventKind::kStarted;
  uint32_t finish = 0;          // kEnded: a Finish; 0: failed
  Status status = Status::kOk;  // kEnded: why it failed
  int32_t id = 0;               // kToken
  StringView text;
  uint32_t n_prompt = 0, n_kept = 0, n_tokens = 0;
};

class EventRing {
 public:
  // Most events of one request that wait at a time, besides those of tokens.
  static constexpr uint32_t kPerRequest = 2;

  void Init(Span<RequestEvent> events) {
    events_ = events;
    first_ = n_ = 0;
  }
  uint32_t size() const { return n_; }
  // REQUIRES: size() is below that of the memory.
  void Put(const RequestEvent& event) { events_[(first_ + n_++) % events_.size()] = event; }
  // REQUIRES: size() != 0.
  RequestEvent Take() {
    const RequestEvent event = events_[first_];
    first_ = (first_ + 1) % static_cast<uint32_t>(events_.size());
    --n_;
    return event;
  }

 private:
  Span<RequestEvent> events_;
  uint32_t first_ = 0, n_ = 0;
};

}  // namespace arn
