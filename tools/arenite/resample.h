// Converts sound to another number of samples in a second.
#pragma once

#include <cstdint>
#include <vector>

namespace arn::tool {

inline constexpr uint32_t kLowestRate = 8000, kHighestRate = 384000;

// Returns ceil(samples.size() * to / from) samples: those of a band-limited signal, by a sinc of 6
// zero crossings under a Hann window whose cutoff is 99 % of the lower rate's half. The formula is
// that of torchaudio.functional.resample with its defaults; sums are f64.
// REQUIRES: both rates are from kLowestRate to kHighestRate.
std::vector<float> Resample(const std::vector<float>& samples, uint32_t from, uint32_t to);

}  // namespace arn::tool
