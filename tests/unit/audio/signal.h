// A tone that rises, swells and fades, and noise: the same samples as make_log_mel_goldens.py's.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

namespace arn::test {

inline std::vector<float> MakeSignal(size_t count) {
  constexpr double kPi = 3.14159265358979323846;
  std::vector<float> out(count);
  uint64_t state = 0;
  for (size_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const double noise = static_cast<double>(state >> 40) / (1 << 23) - 1.0;
    const double t = static_cast<double>(i) / 16000.0;
    const double turns = 150.0 * t + std::fmod(700.0 * t * t, 1.0);
    const double tone = std::sin(2 * kPi * turns) * std::sin(3.0 * t);
    out[i] = static_cast<float>(0.3 * tone + 0.02 * noise);
  }
  return out;
}

}  // namespace arn::test
