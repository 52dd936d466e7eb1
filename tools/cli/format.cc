#include "tools/cli/format.h"

#include <charconv>
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <iterator>
#include <string_view>

namespace arn::cli {

std::string Format(const char* format, ...) {
  va_list args;
  va_start(args, format);
  va_list again;
  va_copy(again, args);
  const int n = std::vsnprintf(nullptr, 0, format, args);
  va_end(args);
  std::string text(n > 0 ? static_cast<size_t>(n) : 0, '\0');
  std::vsnprintf(text.data(), text.size() + 1, format, again);
  va_end(again);
  return text;
}

std::string HumanBytes(uint64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 999.5 && unit + 1 < std::size(kUnits)) {
    value /= 1000;
    ++unit;
  }
  if (unit == 0) return Format("%.0f B", value);
  return Format(value < 9.995 ? "%.2f %s" : (value < 99.95 ? "%.1f %s" : "%.0f %s"), value,
                kUnits[unit]);
}

bool ParseSize(const std::string& text, uint64_t* bytes) {
  uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  uint64_t unit = 0;
  if (at == end) {
    unit = 1;
  } else if (const size_t found = std::string_view("KMGkmg").find(*at);
             found != std::string_view::npos) {
    const std::string_view rest(at + 1, static_cast<size_t>(end - at - 1));
    const uint64_t thousand = rest == "B" ? 1000 : rest.empty() || rest == "iB" ? 1024 : 0;
    unit = thousand;
    for (size_t power = found % 3; power > 0; --power) unit *= thousand;
  }
  if (error != std::errc() || unit == 0 || value > UINT64_MAX / unit) return false;
  *bytes = value * unit;
  return true;
}

}  // namespace arn::cli
