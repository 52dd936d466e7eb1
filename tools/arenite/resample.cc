#include "tools/arenite/resample.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace arn::tool {
namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr double kZeroCrossings = 6;  // lowpass_filter_width
constexpr double kRolloff = 0.99;

// The weights of one output sample, which depend on where it lies between input samples.
struct Phase {
  int64_t first = 0;  // input sample of the first weight, from the start of the period
  std::vector<float> weights;
};

// The first n outputs of a period: `n_in` input samples give `n_out`.
std::vector<Phase> PhasesOf(uint32_t n_in, uint32_t n_out, size_t n) {
  const double cutoff = std::min(n_in, n_out) * kRolloff;
  const double reach = kZeroCrossings * n_in / cutoff;  // in input samples
  std::vector<Phase> phases(n);
  for (size_t p = 0; p < n; ++p) {
    const double centre = static_cast<double>(p) * n_in / n_out;
    phases[p].first = static_cast<int64_t>(std::ceil(centre - reach));
    const auto last = static_cast<int64_t>(std::floor(centre + reach));
    for (int64_t i = phases[p].first; i <= last; ++i) {
      const double t = (static_cast<double>(i) - centre) * cutoff / n_in;
      const double half = std::cos(t * kPi / kZeroCrossings / 2);
      const double sinc = t == 0 ? 1 : std::sin(kPi * t) / (kPi * t);
      phases[p].weights.push_back(static_cast<float>(sinc * half * half * cutoff / n_in));
    }
  }
  return phases;
}

}  // namespace

std::vector<float> Resample(const std::vector<float>& samples, uint32_t from, uint32_t to) {
  if (from == to) return samples;
  const uint32_t common = std::gcd(from, to), n_in = from / common, n_out = to / common;
  const auto n_samples = static_cast<int64_t>(samples.size());
  std::vector<float> out((samples.size() * n_out + n_in - 1) / n_in);
  // A period may be longer than the sound.
  const std::vector<Phase> phases = PhasesOf(n_in, n_out, std::min<size_t>(n_out, out.size()));
  for (size_t o = 0; o < out.size(); ++o) {
    const Phase& phase = phases[o % n_out];
    const int64_t start = static_cast<int64_t>(o / n_out * n_in) + phase.first;
    // Silence before the first sample and behind the last.
    const int64_t first = std::max<int64_t>(start, 0);
    const int64_t end = std::min(start + static_cast<int64_t>(phase.weights.size()), n_samples);
    double sum = 0;
    for (int64_t i = first; i < end; ++i) {
      sum += double{phase.weights[static_cast<size_t>(i - start)]} *
             double{samples[static_cast<size_t>(i)]};
    }
    out[o] = static_cast<float>(sum);
  }
  return out;
}

}  // namespace arn::tool
