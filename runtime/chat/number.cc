#include "runtime/chat/number.h"

#include <charconv>
#include <cmath>
#include <cstring>

#include "runtime/chat/read_double.h"

namespace arn::chat {
namespace {

size_t Put(const char* text, char* out) {
  const size_t n = std::strlen(text);
  std::memcpy(out, text, n);
  return n;
}

bool EqualsNoCase(std::string_view text, std::string_view lower) {
  if (text.size() != lower.size()) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i] >= 'A' && text[i] <= 'Z' ? static_cast<char>(text[i] + 32) : text[i];
    if (c != lower[i]) return false;
  }
  return true;
}

bool IsDecimal(char c) { return c >= '0' && c <= '9'; }
bool IsDigitOrLetter(char c) {
  const char lower = static_cast<char>(c | 32);
  return IsDecimal(c) || (lower >= 'a' && lower <= 'z');
}

// Removes single underscores between digits, those for which `is_digit` is true. Writes to `out`
// (room for `capacity` bytes); returns the count, or -1 if invalid or too long.
int WithoutUnderscores(std::string_view text, bool (*is_digit)(char), char* out, int capacity) {
  int n = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '_') {
      if (i == 0 || i + 1 == text.size() || !is_digit(text[i - 1]) || !is_digit(text[i + 1])) {
        return -1;
      }
      continue;
    }
    if (n == capacity) return -1;
    out[n++] = text[i];
  }
  return n;
}

}  // namespace

size_t FormatInt(int64_t value, char* out) {
  return static_cast<size_t>(std::to_chars(out, out + kMaxNumberBytes, value).ptr - out);
}

size_t FormatFloat(double value, char* out) {
  if (std::isnan(value)) return Put("nan", out);
  if (std::isinf(value)) return Put(value < 0 ? "-inf" : "inf", out);
  // Starts from d.ddde+xx and converts to Python's form.
  char digits[kMaxNumberBytes];
  const auto end =
      std::to_chars(digits, digits + sizeof digits, value, std::chars_format::scientific);
  std::string_view text(digits, static_cast<size_t>(end.ptr - digits));
  size_t n = 0;
  if (text[0] == '-') {
    out[n++] = '-';
    text.remove_prefix(1);
  }
  const size_t e = text.find('e');
  int exponent = 0;
  const char* from = text.data() + e + 1 + (text[e + 1] == '+' ? 1 : 0);
  std::from_chars(from, text.data() + text.size(), exponent);
  char mantissa[kMaxNumberBytes] = {0};
  int m = 0;
  for (const char c : text.substr(0, e)) {
    if (c != '.') mantissa[m++] = c;
  }
  if (exponent < -4 || exponent >= 16) {
    out[n++] = mantissa[0];
    if (m > 1) out[n++] = '.';
    for (int i = 1; i < m; ++i) out[n++] = mantissa[i];
    out[n++] = 'e';
    out[n++] = exponent < 0 ? '-' : '+';
    const int size = exponent < 0 ? -exponent : exponent;
    if (size < 10) out[n++] = '0';
    return n + FormatInt(size, out + n);
  }
  if (exponent < 0) {
    out[n++] = '0';
    out[n++] = '.';
    for (int i = -1; i > exponent; --i) out[n++] = '0';
    for (int i = 0; i < m; ++i) out[n++] = mantissa[i];
    return n;
  }
  for (int i = 0; i <= exponent; ++i) out[n++] = i < m ? mantissa[i] : '0';
  out[n++] = '.';
  if (m <= exponent + 1) out[n++] = '0';
  for (int i = exponent + 1; i < m; ++i) out[n++] = mantissa[i];
  return n;
}

bool ParseFloat(std::string_view text, double* out) {
  char plain[256];
  std::string_view rest = text;  // of any length without underscores
  if (text.find('_') != std::string_view::npos) {
    const int n = WithoutUnderscores(text, IsDecimal, plain, sizeof plain);
    if (n <= 0) return false;
    rest = {plain, static_cast<size_t>(n)};
  }
  if (rest.empty()) return false;
  const bool is_negative = rest[0] == '-';
  if (rest[0] == '-' || rest[0] == '+') rest.remove_prefix(1);
  if (rest.empty()) return false;
  double value = 0.0;
  if (EqualsNoCase(rest, "inf") || EqualsNoCase(rest, "infinity")) {
    value = HUGE_VAL;
  } else if (EqualsNoCase(rest, "nan")) {
    value = std::nan("");
  } else {
    if ((rest[0] < '0' || rest[0] > '9') && rest[0] != '.') return false;
    const char* const end = rest.data() + rest.size();
    if (ReadDouble(rest.data(), end, &value).ptr != end) return false;
  }
  *out = is_negative ? -value : value;
  return true;
}

bool ParseInt(std::string_view text, uint32_t base, int64_t* out) {
  const bool is_negative = !text.empty() && text[0] == '-';
  if (is_negative || (!text.empty() && text[0] == '+')) text.remove_prefix(1);
  if (text.size() > 2 && text[0] == '0') {
    const char c = static_cast<char>(text[1] | 32);
    if ((c == 'x' && base == 16) || (c == 'o' && base == 8) || (c == 'b' && base == 2)) {
      text.remove_prefix(text[2] == '_' ? 3 : 2);
    }
  }
  char plain[128];
  const int n = WithoutUnderscores(text, IsDigitOrLetter, plain, sizeof plain);
  if (n <= 0) return false;
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(plain, plain + n, value, static_cast<int>(base));
  if (end != plain + n || error != std::errc()) return false;
  if (value > static_cast<uint64_t>(INT64_MAX)) return false;
  *out = is_negative ? -static_cast<int64_t>(value) : static_cast<int64_t>(value);
  return true;
}

double RoundTo(double value, int digits) {
  if (!std::isfinite(value)) return value;
  if (digits > 300) return value;
  if (digits < 0) {
    const double unit = std::pow(10.0, -digits);
    return std::isfinite(unit) ? std::nearbyint(value / unit) * unit : 0.0 * value;
  }
  // Fixed notation rounds exactly at the requested digit, half to even: up to 309 digits, a point
  // and 300 more.
  char text[700];
  const auto end = std::to_chars(text, text + sizeof text, value, std::chars_format::fixed, digits);
  double rounded = value;
  ReadDouble(text, end.ptr, &rounded);
  return rounded;
}

}  // namespace arn::chat
