#include "runtime/constrain/json_schema/decimal.h"

#include <algorithm>

namespace arn::json_schema {
namespace {

int CompareMagnitude(const Decimal& a, const Decimal& b) {
  if (a.is_zero() || b.is_zero())
    return static_cast<int>(b.is_zero()) - static_cast<int>(a.is_zero());
  if (a.point != b.point) return a.point < b.point ? -1 : 1;
  const size_t common = std::min(a.digits.size, b.digits.size);
  const int order = std::memcmp(a.digits.data, b.digits.data, common);
  if (order != 0) return order;
  return a.digits.size < b.digits.size ? -1 : a.digits.size > b.digits.size ? 1 : 0;
}

}  // namespace

Status ParseDecimal(StringView text, Arena* arena, Decimal* out) {
  ARN_ASSIGN(void* memory, arena->Allocate(text.size, 1));
  char* const digits = static_cast<char*>(memory);
  *out = {};
  size_t at = 0, n = 0;
  int64_t point = 0;
  if (text.data[at] == '-') {
    out->is_negative = true;
    ++at;
  }
  bool is_fraction = false;
  for (; at < text.size && text.data[at] != 'e' && text.data[at] != 'E'; ++at) {
    const char c = text.data[at];
    if (c == '.') {
      is_fraction = true;
      continue;
    }
    if (n == 0 && c == '0') {
      if (is_fraction) --point;
      continue;
    }
    digits[n++] = c;
    if (!is_fraction) ++point;
  }
  while (n > 0 && digits[n - 1] == '0') --n;
  if (n == 0) {
    out->is_negative = false;  // -0 equals 0
    return Status::kOk;
  }
  if (at < text.size) {
    ++at;
    const bool is_down = text.data[at] == '-';
    if (is_down || text.data[at] == '+') ++at;
    int64_t exponent = 0;
    for (; at < text.size; ++at) {
      exponent = std::min<int64_t>(exponent * 10 + (text.data[at] - '0'), INT32_MAX);
    }
    point += is_down ? -exponent : exponent;
  }
  if (point > kMaxDigits || static_cast<int64_t>(n) - point > kMaxDigits) {
    return Status::kUnsupported;
  }
  out->point = static_cast<int32_t>(point);
  out->digits = {digits, n};
  return Status::kOk;
}

int Compare(const Decimal& a, const Decimal& b) {
  if (a.is_negative != b.is_negative) return a.is_negative ? -1 : 1;
  const int order = CompareMagnitude(a, b);
  return a.is_negative ? -order : order;
}

Status PlainText(const Decimal& value, Arena* arena, StringView* out) {
  const uint32_t n_integer = value.IntegerDigits(), n_fraction = value.FractionDigits();
  ARN_ASSIGN(void* memory, arena->Allocate(uint64_t{n_integer} + n_fraction + 2, 1));
  char* const text = static_cast<char*>(memory);
  size_t n = 0;
  if (value.is_negative) text[n++] = '-';
  for (uint32_t i = 0; i < n_integer; ++i) text[n++] = value.IntegerDigit(i);
  if (n_fraction != 0) text[n++] = '.';
  for (uint32_t i = 0; i < n_fraction; ++i) text[n++] = value.FractionDigit(i);
  *out = {text, n};
  return Status::kOk;
}

uint64_t ToCount(const Decimal& value, bool* is_count) {
  *is_count = value.is_integer() && !value.is_negative;
  if (!*is_count) return 0;
  if (value.point > 19) return UINT64_MAX;
  uint64_t count = 0;
  for (int32_t i = 0; i < value.point; ++i) {
    count = count * 10 + static_cast<uint64_t>(value.IntegerDigit(static_cast<uint32_t>(i)) - '0');
  }
  return count;
}

}  // namespace arn::json_schema
