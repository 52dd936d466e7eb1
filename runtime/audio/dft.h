// Dft: power spectra of 400 real samples, several at a time. 400 is no power of two: the samples
// become 200 complex ones, which have the factors 2, 4, 5 and 5.
#pragma once

#include <cstdint>

namespace arn {

class Dft {
 public:
  static constexpr uint32_t kSize = 400;
  static constexpr uint32_t kBins = kSize / 2 + 1;
  static constexpr uint32_t kLanes = 4;  // spectra of one Run(), side by side

  // Fills the table of roots of unity.
  Dft();
  // Returns where sample n of a lane goes.
  float* Sample(uint32_t n, uint32_t lane) {
    return (n % 2 == 0 ? re_[0] : im_[0]) + n / 2 * kLanes + lane;
  }
  // Writes |X[k]|^2 to power[k * kLanes + lane], for k < kBins, X[k] = sum_n x[n] exp(-2 pi i k n /
  // kSize). A lane's bits do not depend on the other lanes. Overwrites the samples.
  void Run(float* power);

 private:
  // From re_[from], im_[from] to the other two.
  void Stage(uint32_t radix, uint32_t stride, uint32_t from);

  static constexpr uint32_t kComplex = kSize / 2;

  float cos_[kSize];  // of 2 pi i / kSize
  float sin_[kSize];
  float re_[2][kComplex * kLanes];  // input and output of a stage
  float im_[2][kComplex * kLanes];
};

}  // namespace arn
