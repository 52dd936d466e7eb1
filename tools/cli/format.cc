#include "tools/cli/format.h"

#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <iterator>

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

}  // namespace arn::cli
