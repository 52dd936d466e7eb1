// Codebooks of GGUF's IQ1, IQ2 and IQ3 types: the points that the indices in their blocks choose.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace arn::convert {

class Codebook {
 public:
  // Point n's levels are those that the digits of n in base levels.size() choose, the first level
  // by the lowest digit. set: hexadecimal digits; bit n % 4 of digit n / 4 says whether point n is
  // in the codebook. Indices number those that are, in order. width: levels of a point.
  Codebook(std::string_view set, std::vector<int8_t> levels, uint32_t width);

  uint32_t size() const { return static_cast<uint32_t>(values_.size()) / width_; }
  uint32_t width() const { return width_; }
  // Returns the `width()` levels of a point. REQUIRES: index < size().
  const int8_t* Point(uint32_t index) const { return values_.data() + index * width_; }

 private:
  const uint32_t width_;
  std::vector<int8_t> values_;  // [size, width]
};

// Return the codebook of a type; IQ1_M has that of IQ1_S. Made at the first call. Thread-safe.
const Codebook& Iq1Codebook();     // 2048 points of 8 levels
const Codebook& Iq2XxsCodebook();  // 256 of 8
const Codebook& Iq2XsCodebook();   // 512 of 8
const Codebook& Iq2SCodebook();    // 1024 of 8
const Codebook& Iq3XxsCodebook();  // 256 of 4
const Codebook& Iq3SCodebook();    // 512 of 4

}  // namespace arn::convert
