// StopFilter: text on its way to the user. Holds back the bytes that could still become a stop
// string, so nothing that was shown is ever taken back, and cuts the text where a stop string
// begins.
#pragma once

#include <cstddef>

#include "platform/base/span.h"

namespace arn {

class StopFilter {
 public:
  // `buffer` has room for the longest stop string and the longest piece that is added at once.
  // `stops` are non-empty and outlive the filter.
  StopFilter(Span<const StringView> stops, Span<char> buffer) : stops_(stops), buffer_(buffer) {}

  // Where the next piece is to be written. Ends the life of the text that was handed out before.
  Span<char> Space();
  // `bytes` were written to Space(): whole UTF-8 characters. True when a stop string is complete;
  // then *text ends where it begins. `last`: nothing follows, so nothing is held back. *text is
  // valid until the next Space().
  bool Add(size_t bytes, bool last, StringView* text);

 private:
  Span<const StringView> stops_;
  Span<char> buffer_;
  size_t shown_ = 0;  // bytes at the buffer's start that were handed out
  size_t size_ = 0;   // bytes in the buffer
};

}  // namespace arn
