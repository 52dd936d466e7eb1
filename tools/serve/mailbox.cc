#include "tools/serve/mailbox.h"

#include <utility>

namespace arn::serve {
namespace {

size_t BytesOf(const Event& event) {
  return sizeof(Event) + event.text.size() + event.top.size() * sizeof(arn_token_logprob);
}

}  // namespace

void Mailbox::Put(Event event) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (is_closed_) return;
    bytes_ += BytesOf(event);
    events_.push_back(std::move(event));
  }
  came_.notify_one();
}

void Mailbox::Break() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_broken_ = true;
  }
  came_.notify_one();
}

bool Mailbox::IsFull() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return bytes_ >= kFullBytes;
}

bool Mailbox::IsClosed() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return is_closed_;
}

std::optional<Event> Mailbox::Take(std::chrono::milliseconds time) {
  std::unique_lock<std::mutex> lock(mutex_);
  came_.wait_for(lock, time, [this] { return is_broken_ || !events_.empty(); });
  if (is_broken_) {
    Event broken;
    broken.kind = Event::Kind::kError;
    broken.error = Unavailable("out of memory", "out_of_memory");
    return broken;
  }
  if (events_.empty()) return std::nullopt;
  Event event = std::move(events_.front());
  events_.pop_front();
  bytes_ -= BytesOf(event);
  return event;
}

void Mailbox::Close() {
  const std::lock_guard<std::mutex> lock(mutex_);
  is_closed_ = true;
  events_.clear();
  bytes_ = 0;
}

}  // namespace arn::serve
