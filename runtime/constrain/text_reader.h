// Reads a text from left to right, for the parsers of expressions and grammars.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/base/span.h"
#include "runtime/constrain/terms.h"
#include "runtime/text/utf8.h"

namespace arn {

class TextReader {
 public:
  explicit TextReader(StringView text) : text_(text) {}

  bool AtEnd() const { return offset_ == text_.size; }
  size_t offset() const { return offset_; }
  StringView Since(size_t offset) const { return {text_.data + offset, offset_ - offset}; }
  bool At(char c) const { return offset_ < text_.size && text_.data[offset_] == c; }
  bool AtDigit() const { return DigitAt(offset_) < 10; }
  bool AtAll(StringView text) const {
    return text.size <= text_.size - offset_ && StringView(text_.data + offset_, text.size) == text;
  }
  // REQUIRES: not at the end.
  char Peek() const { return text_.data[offset_]; }
  char Next() { return text_.data[offset_++]; }
  bool Skip(char c) {
    if (!At(c)) return false;
    ++offset_;
    return true;
  }
  bool SkipAll(StringView text) {
    if (!AtAll(text)) return false;
    offset_ += text.size;
    return true;
  }

  // Reads a character. Returns false, and stays, if it is not UTF-8 or at the end.
  bool Read(uint32_t* c) {
    if (AtEnd()) return false;
    const Utf8Char read = ReadUtf8(text_.data + offset_, text_.data + text_.size);
    if (read.kind != Utf8Kind::kValid) return false;
    *c = read.code_point;
    offset_ += read.bytes;
    return true;
  }
  // Reads exactly n hexadecimal digits.
  bool ReadHex(uint32_t n, uint32_t* value) {
    *value = 0;
    for (uint32_t i = 0; i < n; ++i) {
      const uint32_t digit = DigitAt(offset_ + i);
      if (digit > 15) return false;
      *value = *value << 4 | digit;
    }
    offset_ += n;
    return true;
  }
  // After "\u" of ECMA-262: four digits, which may be half of a surrogate pair, or any in braces.
  bool ReadUnicodeEscape(uint32_t* c) {
    if (Skip('{')) {
      *c = 0;
      uint32_t n = 0;
      for (; DigitAt(offset_) < 16; ++offset_, ++n) {
        *c = *c << 4 | DigitAt(offset_);
        if (*c > 0x10FFFF) return false;
      }
      return n > 0 && Skip('}') && !IsSurrogate(*c);
    }
    if (!ReadHex(4, c)) return false;
    if (!IsSurrogate(*c)) return true;
    uint32_t low = 0;
    if (*c >= 0xDC00 || !SkipAll("\\u") || !ReadHex(4, &low)) return false;
    if (low < 0xDC00 || low > 0xDFFF) return false;
    *c = 0x10000 + ((*c - 0xD800) << 10) + (low - 0xDC00);
    return true;
  }
  // Reads {n}, {n,}, {n,m} or, if `min_may_lack`, {,m}. Stays if it is none of them. *fits: no
  // count is above 2^32 - 2.
  void ReadCount(uint32_t* min, uint32_t* max, bool* is_count, bool* fits,
                 bool min_may_lack = false) {
    const size_t start = offset_;
    *is_count = false;
    if (!Skip('{')) return;
    uint64_t first = 0, last = kUnbounded;
    const bool has_first = ReadNumber(&first);
    bool has_last = false;
    const bool has_comma = Skip(',');
    if (has_comma) has_last = ReadNumber(&last);
    if (!has_comma) last = first;
    if (!Skip('}') || (!has_first && !(min_may_lack && has_last))) {
      offset_ = start;
      return;
    }
    *is_count = true;
    *fits = first < kUnbounded && (last < kUnbounded || (has_comma && !has_last));
    *min = static_cast<uint32_t>(first);
    *max = static_cast<uint32_t>(last);
  }

 private:
  static bool IsSurrogate(uint32_t c) { return c >= 0xD800 && c <= 0xDFFF; }
  // 255 if there is no hexadecimal digit.
  uint32_t DigitAt(size_t offset) const {
    if (offset >= text_.size) return 255;
    const char c = text_.data[offset];
    if (c >= '0' && c <= '9') return static_cast<uint32_t>(c - '0');
    if (c >= 'a' && c <= 'f') return static_cast<uint32_t>(c - 'a' + 10);
    if (c >= 'A' && c <= 'F') return static_cast<uint32_t>(c - 'A' + 10);
    return 255;
  }
  // Numbers above 2^32 - 1 become that.
  bool ReadNumber(uint64_t* number) {
    if (!AtDigit()) return false;
    for (*number = 0; AtDigit(); ++offset_) {
      *number = *number * 10 + DigitAt(offset_);
      if (*number > kUnbounded) *number = kUnbounded;
    }
    return true;
  }

  StringView text_;
  size_t offset_ = 0;
};

}  // namespace arn
