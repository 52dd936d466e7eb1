// The text of a JSON string that is being read, in the words of a custom term.
#pragma once

#include <cstdint>

#include "platform/base/span.h"

namespace arn::json_schema {

// A view of words: two of state, then the UTF-8 bytes so far, four in a word.
class CapturedText {
 public:
  static constexpr uint32_t kStateWords = 3;
  // Bytes of a text that StringTerms::Capturable() has.
  static constexpr uint32_t kMaxBytes = 4096;
  static constexpr uint32_t kMaxWords = kStateWords + kMaxBytes / 4 + 2;

  explicit CapturedText(uint32_t* words) : words_(words) {}

  // Reads a byte. REQUIRES: with those before it, it begins a content of Capturable().
  void Add(uint8_t byte);
  // Returns whether the next byte begins a character or an escape.
  bool IsBetween() const { return words_[kEscape] == 0; }
  uint32_t n_words() const { return kStateWords + (words_[kBytes] + 3) / 4; }
  // The bytes so far, in a view of the words.
  StringView text() const {
    return {reinterpret_cast<const char*>(words_ + kStateWords), words_[kBytes]};
  }

 private:
  enum Word : uint32_t {
    kEscape,  // 0: none; 1: after a backslash; 2 and more: hexadecimal digits are being read
    kUnits,   // UTF-16 units read by \u: a high surrogate << 16, and the current one
    kBytes,
  };
  void Put(uint8_t byte);
  void EndUnit();

  uint32_t* const words_;
};

}  // namespace arn::json_schema
