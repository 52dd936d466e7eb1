// GivenText: tracks which bytes of a rendering come from the caller (messages, tools, variables)
// and which from the template, so that user text cannot become control tokens when tokenised.
//
// Text in the caller's JSON is given, text in the program is not. For text in the heap there is one
// bit per byte, copied along with the bytes. Substrings need no tracking: they point into the
// original.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "platform/base/span.h"

namespace arn::chat {

class GivenText {
 public:
  // Returns the bytes to reserve for the bits out of `bytes` of heap.
  static size_t BitsFor(size_t bytes) { return bytes < 9 ? bytes : bytes / 9 + 1; }
  // `bits` has one bit per byte of `heap`.
  GivenText(Span<std::byte> heap, Span<std::byte> bits)
      : heap_(reinterpret_cast<const char*>(heap.data())), size_(heap.size()), bits_(bits.data()) {}

  // Adds a text of the caller; at most kMaxSources.
  void AddSource(std::string_view text);
  static constexpr uint32_t kMaxSources = 3;

  // Returns the length of the first run of equal bits in `text`, and its value. REQUIRES: `text` is
  // not empty.
  size_t Run(std::string_view text, bool* is_given) const;
  bool HasGiven(std::string_view text) const;

  // Sets the bits of bytes written to `to` in the heap: copies those of `from` one by one, or
  // `otherwise` if `from` lies neither in the heap nor in a caller's text.
  void Copy(const char* to, std::string_view from, bool otherwise);
  void Set(const char* to, size_t bytes, bool is_given);

 private:
  bool IsInHeap(const char* text) const { return text >= heap_ && text < heap_ + size_; }
  bool IsInSource(const char* text) const;
  bool Bit(size_t at) const { return (static_cast<uint8_t>(bits_[at / 8]) >> (at % 8) & 1) != 0; }

  const char* heap_;
  size_t size_;
  std::byte* bits_;
  std::string_view sources_[kMaxSources];
  uint32_t n_sources_ = 0;
};

}  // namespace arn::chat
