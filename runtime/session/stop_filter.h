// StopFilter: cuts the output text at the first stop string. Holds back bytes that may still become
// a stop string, so shown text is never retracted.
#pragma once

#include <cstddef>

#include "platform/base/span.h"

namespace arn {

class StopFilter {
 public:
  // REQUIRES: `buffer` fits the longest stop string plus the longest piece added at once. `stops`
  // are non-empty and must outlive the filter.
  StopFilter(Span<const StringView> stops, Span<char> buffer) : stops_(stops), buffer_(buffer) {}

  // Returns the buffer for the next piece. Invalidates the text returned before.
  Span<char> Space();
  // Adds `bytes` written to Space(), which must be whole UTF-8 characters. Returns true if a stop
  // string is complete; *text then ends where it begins. `last`: nothing follows, so nothing is
  // held back. *text is valid until the next Space().
  bool Add(size_t bytes, bool last, StringView* text);

 private:
  Span<const StringView> stops_;
  Span<char> buffer_;
  size_t shown_ = 0;  // bytes at the buffer's start that have been returned
  size_t size_ = 0;   // bytes in the buffer
};

}  // namespace arn
