#include "kernels/contract/streams.h"

#include <cmath>

#include "platform/base/arith.h"

namespace arn {
namespace {

constexpr uint32_t kStreamColumns = 16;  // worked on at once, in registers
constexpr uint32_t kLanes = 16;          // partial sums

// Returns the sum of term(i) over i of [0, n).
template <typename Term>
double Sum(uint32_t n, const Term& term) {
  float sums[kLanes] = {};
  uint32_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (uint32_t l = 0; l < kLanes; ++l) sums[l] += term(i + l);
  }
  double total = 0.0;
  for (; i < n; ++i) total += static_cast<double>(term(i));
  for (const float sum : sums) total += static_cast<double>(sum);
  return total;
}

double MeanSquare(const float* x, uint32_t n) {
  return Sum(n, [&](uint32_t i) { return x[i] * x[i]; }) / n;
}

// REQUIRES: n <= kStreamColumns.
void Predict(const MixStreamsArgs& a, uint32_t first, uint32_t n, float* x) {
  float predicted[kMaxStreams][kStreamColumns];
  for (uint32_t i = 0; i < a.n_streams; ++i) {
    for (uint32_t c = 0; c < n; ++c) predicted[i][c] = a.streams[i][first + c];
    for (uint32_t j = 0; j < a.n_streams; ++j) {
      const float coef = a.coefs[i * a.n_streams + j];
      for (uint32_t c = 0; c < n; ++c) predicted[i][c] += coef * a.streams[j][first + c];
    }
  }
  for (uint32_t i = 0; i < a.n_streams; ++i) {
    for (uint32_t c = 0; c < n; ++c) a.streams[i][first + c] = predicted[i][c];
  }
  for (uint32_t c = 0; c < n; ++c) x[first + c] = predicted[a.active][c];
}

void Correct(const MixStreamsArgs& a, uint32_t first, uint32_t n, float* x) {
  float innovation[kStreamColumns];
  for (uint32_t c = 0; c < n; ++c) innovation[c] = x[first + c] - a.streams[a.active][first + c];
  for (uint32_t i = 0; i < a.n_streams; ++i) {
    const float coef = 1.0f + a.coefs[i];
    for (uint32_t c = 0; c < n; ++c) a.streams[i][first + c] += coef * innovation[c];
  }
  for (uint32_t c = 0; c < n; ++c) {
    const float corrected = a.streams[a.active][first + c];
    x[first + c] = a.scale == nullptr ? corrected : corrected * a.scale[first + c];
  }
}

void Mean(const MixStreamsArgs& a, uint32_t first, uint32_t n, float* x) {
  for (uint32_t c = first; c < first + n; ++c) {
    float sum = a.streams[0][c];
    for (uint32_t i = 1; i < a.n_streams; ++i) sum += a.streams[i][c];
    x[c] = sum / static_cast<float>(a.n_streams);
  }
}

}  // namespace

void MixStreams(const MixStreamsArgs& args, float* x) {
  const auto mix = args.rule == StreamRule::kPredict   ? Predict
                   : args.rule == StreamRule::kCorrect ? Correct
                                                       : Mean;
  for (uint32_t first = 0; first < args.width; first += kStreamColumns) {
    mix(args, first, Min(kStreamColumns, args.width - first), x);
  }
}

void MatchRms(const float* x, const float* like, uint32_t n, float epsilon, float* out) {
  const double least = static_cast<double>(epsilon);
  const auto factor =
      static_cast<float>(std::sqrt(MeanSquare(like, n) / Max(MeanSquare(x, n), least)));
  for (uint32_t i = 0; i < n; ++i) out[i] = x[i] * factor;
}

void Threshold(float deviations, uint32_t n, float* x) {
  const auto mean = static_cast<float>(Sum(n, [&](uint32_t i) { return x[i]; }) / n);
  const double variance = Sum(n, [&](uint32_t i) { return (x[i] - mean) * (x[i] - mean); }) / n;
  const float cutoff = mean + deviations * static_cast<float>(std::sqrt(variance));
  for (uint32_t i = 0; i < n; ++i) x[i] = Max(x[i] - cutoff, 0.0f);
}

}  // namespace arn
