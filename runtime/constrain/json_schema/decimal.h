// Decimal numbers of any size, exact: a JSON number is never rounded.
#pragma once

#include "runtime/constrain/json_schema/list.h"

namespace arn::json_schema {

// 0.d1 d2 d3 ... times 10^point. d1 and the last digit are not 0; zero has no digits.
struct Decimal {
  bool is_negative = false;
  int32_t point = 0;
  StringView digits;  // '0' to '9'

  bool is_zero() const { return digits.size == 0; }
  bool is_integer() const { return point >= static_cast<int64_t>(digits.size); }
  // Returns digit i of the integer part, i = 0 being the first of IntegerDigits().
  char IntegerDigit(uint32_t i) const {
    return point > 0 && i < digits.size ? digits.data[i] : '0';
  }
  // At least 1: 0.5 has the integer digit 0.
  uint32_t IntegerDigits() const { return point > 0 ? static_cast<uint32_t>(point) : 1; }
  // Returns digit i after the point.
  char FractionDigit(uint32_t i) const {
    const int64_t at = int64_t{point} + i;
    return at >= 0 && at < static_cast<int64_t>(digits.size) ? digits.data[at] : '0';
  }
  uint32_t FractionDigits() const {
    return is_integer() ? 0 : static_cast<uint32_t>(static_cast<int64_t>(digits.size) - point);
  }
};

// Numbers whose plain spelling needs more digits are refused.
inline constexpr int64_t kMaxDigits = 1000;

// Parses a JSON number. Returns kUnsupported if its plain spelling has more than kMaxDigits digits.
Status ParseDecimal(StringView text, Arena* arena, Decimal* out);

// Returns less than, equal to or greater than 0 as a compares with b.
int Compare(const Decimal& a, const Decimal& b);

// Writes the number without exponent and without zeros that mean nothing: -12.5, 0, 0.001.
Status PlainText(const Decimal& value, Arena* arena, StringView* out);

// Returns a non-negative integer, at most UINT64_MAX, or -1 by *is_count = false.
uint64_t ToCount(const Decimal& value, bool* is_count);

}  // namespace arn::json_schema
