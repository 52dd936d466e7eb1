// Appends text to a buffer of fixed size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "platform/base/span.h"
#include "runtime/text/utf8.h"

namespace arn {

// Never writes past the buffer; overflow() is true if it was too small.
class TextWriter {
 public:
  explicit TextWriter(Span<char> buffer) : buffer_(buffer) {}
  void Put(StringView text) {
    if (text.size > buffer_.size() - size_) {
      overflow_ = true;
      return;
    }
    if (text.size > 0) std::memcpy(buffer_.data() + size_, text.data, text.size);
    size_ += text.size;
  }
  void PutCharacter(uint32_t code_point) {
    char bytes[4];
    const size_t size = WriteUtf8(code_point, bytes);
    Put({bytes, size});
  }
  bool overflow() const { return overflow_; }
  StringView text() const { return {buffer_.data(), size_}; }

 private:
  Span<char> buffer_;
  size_t size_ = 0;
  bool overflow_ = false;
};

}  // namespace arn
