// JsonWriter: writes JSON into a buffer of a fixed size.
#pragma once

#include <cstddef>
#include <string_view>

#include "platform/base/span.h"

namespace arn {

class JsonWriter {
 public:
  explicit JsonWriter(Span<char> out) : out_(out) {}

  // Writes the text as it is.
  void Raw(std::string_view text);
  // Writes UTF-8 text as the inside of a string.
  void Escaped(std::string_view text);
  void String(std::string_view text);

  // Bytes written, beyond the buffer's size if they did not fit.
  size_t bytes() const { return bytes_; }
  bool fits() const { return bytes_ <= out_.size(); }
  // Takes back what was written after `bytes`, a former bytes().
  void Rewind(size_t bytes) { bytes_ = bytes; }
  // Returns what was written after `bytes`. REQUIRES: fits().
  std::string_view After(size_t bytes) const { return {out_.data() + bytes, bytes_ - bytes}; }

 private:
  Span<char> out_;
  size_t bytes_ = 0;
};

}  // namespace arn
