#include "runtime/constrain/json_schema/captured_text.h"

#include <cstring>

#include "runtime/text/utf8.h"

namespace arn::json_schema {
namespace {

constexpr char kShortEscapes[] = "\"\\/bfnrt";
constexpr char kShortMeanings[] = "\"\\/\b\f\n\r\t";

}  // namespace

void CapturedText::Put(uint8_t byte) {
  if (words_[kBytes] % 4 == 0) words_[kStateWords + words_[kBytes] / 4] = 0;
  reinterpret_cast<uint8_t*>(words_ + kStateWords)[words_[kBytes]++] = byte;
}

void CapturedText::EndUnit() {
  const uint32_t unit = words_[kUnits] & 0xFFFF, high = words_[kUnits] >> 16;
  words_[kEscape] = 0;
  if (unit >= 0xD800 && unit < 0xDC00) {
    words_[kUnits] = unit << 16;  // its other half follows
    return;
  }
  words_[kUnits] = 0;
  char utf8[4];
  const uint32_t code_point = high != 0 ? 0x10000 + ((high & 0x3FF) << 10) + (unit & 0x3FF) : unit;
  const size_t n = WriteUtf8(code_point, utf8);
  for (size_t i = 0; i < n; ++i) Put(static_cast<uint8_t>(utf8[i]));
}

void CapturedText::Add(uint8_t byte) {
  uint32_t* const escape = &words_[kEscape];
  if (*escape == 0) {
    if (byte == '\\') {
      *escape = 1;
    } else {
      Put(byte);
    }
    return;
  }
  if (*escape == 1) {
    if (byte == 'u') {
      *escape = 2;
      words_[kUnits] &= 0xFFFF0000u;
      return;
    }
    *escape = 0;
    Put(static_cast<uint8_t>(kShortMeanings[std::strchr(kShortEscapes, byte) - kShortEscapes]));
    return;
  }
  const uint32_t digit = byte <= '9' ? byte - '0' : (byte | 32u) - 'a' + 10;
  words_[kUnits] = (words_[kUnits] & 0xFFFF0000u) | ((words_[kUnits] << 4 | digit) & 0xFFFF);
  if (++*escape == 6) EndUnit();
}

}  // namespace arn::json_schema
