#include "runtime/chat/read_double.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace arn::chat {
namespace {

// No double, nor a midpoint between two, has more digits; beyond them only the presence of a
// non-zero digit matters.
constexpr int kDigits = 768;
// Larger exponents are equivalent.
constexpr int kMostExponent = 100000;

bool IsDigit(const char* p, const char* end) { return p != end && *p >= '0' && *p <= '9'; }

// value = digits * 10^exponent.
struct Decimal {
  char digits[kDigits + 1];
  int n = 0;
  int exponent = 0;
  bool has_more = false;

  void Add(char digit, bool is_fraction) {
    if (n < kDigits) {
      if (digit != '0' || n > 0) digits[n++] = digit;
      exponent -= is_fraction ? 1 : 0;
    } else {
      has_more |= digit != '0';
      exponent += is_fraction ? 0 : 1;
    }
  }
};

}  // namespace

std::from_chars_result ReadDoubleByStrtod(const char* begin, const char* end, double* out) {
  const char* p = begin;
  const bool is_negative = p != end && *p == '-';
  if (is_negative) ++p;
  Decimal decimal;
  bool is_number = false;
  for (; IsDigit(p, end); ++p, is_number = true) decimal.Add(*p, false);
  if (p != end && *p == '.' && (is_number || IsDigit(p + 1, end))) {
    for (++p; IsDigit(p, end); ++p, is_number = true) decimal.Add(*p, true);
  }
  if (!is_number) return {begin, std::errc::invalid_argument};
  if (p != end && (*p == 'e' || *p == 'E')) {
    const char* e = p + 1;
    const bool is_minus = e != end && *e == '-';
    if (e != end && (*e == '-' || *e == '+')) ++e;
    if (IsDigit(e, end)) {
      int exponent = 0;
      for (; IsDigit(e, end); ++e) {
        if (exponent < kMostExponent) exponent = exponent * 10 + (*e - '0');
      }
      decimal.exponent += is_minus ? -exponent : exponent;
      p = e;
    }
  }
  double value = 0.0;
  if (decimal.n > 0) {
    if (decimal.has_more) {
      decimal.digits[decimal.n++] = '1';
      --decimal.exponent;
    }
    // Without a decimal point, which depends on the locale.
    char text[kDigits + 32];
    std::snprintf(text, sizeof text, "%.*se%d", decimal.n, decimal.digits, decimal.exponent);
    value = std::strtod(text, nullptr);
  }
  *out = is_negative ? -value : value;
  const bool fits = decimal.n == 0 || (value != 0.0 && !std::isinf(value));
  return {p, fits ? std::errc() : std::errc::result_out_of_range};
}

std::from_chars_result ReadDouble(const char* begin, const char* end, double* out) {
#if defined(__cpp_lib_to_chars)
  const std::from_chars_result result = std::from_chars(begin, end, *out);
  if (result.ec == std::errc::result_out_of_range) ReadDoubleByStrtod(begin, result.ptr, out);
  return result;
#else
  return ReadDoubleByStrtod(begin, end, out);
#endif
}

}  // namespace arn::chat
