#include "runtime/session/stop_filter.h"

#include <cstdint>
#include <cstring>

#include "platform/base/arith.h"

namespace arn {
namespace {

// Returns the position of `stop` in text, or text.size.
size_t Find(StringView text, StringView stop) {
  for (size_t i = 0; i + stop.size <= text.size; ++i) {
    if (std::memcmp(text.data + i, stop.data, stop.size) == 0) return i;
  }
  return text.size;
}

// Length of the longest suffix of text that is a proper prefix of `stop`.
size_t PartialMatch(StringView text, StringView stop) {
  for (size_t n = Min(text.size, stop.size - 1); n > 0; --n) {
    if (std::memcmp(text.data + text.size - n, stop.data, n) == 0) return n;
  }
  return 0;
}

// Moves `at` back to the start of its character: a stop string may begin inside one.
size_t CharacterStart(StringView text, size_t at) {
  while (at > 0 && at < text.size && (static_cast<uint8_t>(text.data[at]) & 0xc0u) == 0x80u) --at;
  return at;
}

}  // namespace

Span<char> StopFilter::Space() {
  std::memmove(buffer_.data(), buffer_.data() + shown_, size_ - shown_);
  size_ -= shown_;
  shown_ = 0;
  return buffer_.subspan(size_, buffer_.size() - size_);
}

bool StopFilter::Add(size_t bytes, bool last, StringView* text) {
  size_ += bytes;
  const StringView pending(buffer_.data(), size_);
  size_t stop_at = size_;
  size_t held = 0;
  for (const StringView& stop : stops_) {
    stop_at = Min(stop_at, Find(pending, stop));
    held = Max(held, PartialMatch(pending, stop));
  }
  if (stop_at < size_) {
    *text = StringView(buffer_.data(), CharacterStart(pending, stop_at));
    shown_ = size_;
    return true;
  }
  shown_ = last ? size_ : CharacterStart(pending, size_ - held);
  *text = StringView(buffer_.data(), shown_);
  return false;
}

}  // namespace arn
