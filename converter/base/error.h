// Error reporting of the converter: one sentence that names the file, the field, the expected and
// the actual value. main() prints it and exits with 1.
#pragma once

#include <stdexcept>
#include <string>

namespace arn::convert {

class ConvertError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Throws a ConvertError with a printf-style message.
[[noreturn]] void Fail(const char* format, ...) __attribute__((format(printf, 1, 2)));

// Returns a printf-style string.
std::string Format(const char* format, ...) __attribute__((format(printf, 1, 2)));

// Returns "a, b, c and 7 more": at most `limit` of the names.
template <typename Names>
std::string JoinNames(const Names& names, size_t limit = 8) {
  std::string text;
  size_t count = 0;
  for (const auto& name : names) {
    if (count++ >= limit) continue;
    if (!text.empty()) text += ", ";
    text += name;
  }
  if (count > limit) text += " and " + std::to_string(count - limit) + " more";
  return text;
}

}  // namespace arn::convert
