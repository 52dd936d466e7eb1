#include "converter/gguf/codebooks.h"

#include <utility>

#include "converter/gguf/codebook_points.h"

namespace arn::convert {

Codebook::Codebook(std::string_view set, std::vector<int8_t> levels, uint32_t width)
    : width_(width) {
  const uint32_t base = static_cast<uint32_t>(levels.size());
  for (uint32_t n = 0; n < set.size() * 4; ++n) {
    const char c = set[n / 4];
    const uint32_t digit = static_cast<uint32_t>(c <= '9' ? c - '0' : c - 'a' + 10);
    if ((digit >> n % 4 & 1u) == 0) continue;
    for (uint32_t i = 0, rest = n; i < width; ++i, rest /= base) {
      values_.push_back(levels[rest % base]);
    }
  }
}

const Codebook& Iq1Codebook() {
  static const Codebook book(kIq1Points, {-1, 0, 1}, 8);
  return book;
}

const Codebook& Iq2XxsCodebook() {
  static const Codebook book(kIq2XxsPoints, {8, 25, 43}, 8);
  return book;
}

const Codebook& Iq2XsCodebook() {
  static const Codebook book(kIq2XsPoints, {8, 25, 43}, 8);
  return book;
}

const Codebook& Iq2SCodebook() {
  static const Codebook book(kIq2SPoints, {8, 25, 43}, 8);
  return book;
}

const Codebook& Iq3XxsCodebook() {
  static const Codebook book(kIq3XxsPoints, {4, 12, 20, 28, 36, 44, 52, 62}, 4);
  return book;
}

const Codebook& Iq3SCodebook() {
  static const Codebook book(kIq3SPoints, {1, 3, 5, 7, 9, 11, 13, 15}, 4);
  return book;
}

}  // namespace arn::convert
