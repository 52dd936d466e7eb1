#include "converter/quantize/compensate.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "converter/error.h"
#include "converter/quantize/quantize.h"
#include "kernels/weight.h"
#include "platform/base/arith.h"

namespace arn::convert {
namespace {

constexpr double kDamping = 0.01;  // of the mean variance
constexpr int kSweeps = 3;
constexpr size_t kBlock = kInt4BlockSize;
// Scales that are tried besides the searched one, as multiples of it. The sign says which end of
// the range has the 16th level.
constexpr float kScaleFactors[] = {0.95f, 0.9f,  0.85f,  0.8f,  1.05f,  1.1f,  1.15f,
                                   -1.0f, -0.9f, -0.85f, -0.8f, -0.95f, -1.1f, -1.15f};

typedef float Vec __attribute__((vector_size(16)));
constexpr size_t kLanes = 4;

// y += factor * x.
void AddScaled(float factor, const float* x, size_t n, float* y) {
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    Vec a, b;
    std::memcpy(&a, x + i, sizeof a);
    std::memcpy(&b, y + i, sizeof b);
    b += factor * a;
    std::memcpy(y + i, &b, sizeof b);
  }
  for (; i < n; ++i) y[i] += factor * x[i];
}

// The lower factor L of a symmetric positive definite matrix [n, n], in place; above it stays what
// was there. False when the matrix is not positive definite.
bool Cholesky(size_t n, std::vector<double>* matrix) {
  std::vector<double>& a = *matrix;
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j <= i; ++j) {
      double sum = a[i * n + j];
      for (size_t k = 0; k < j; ++k) sum -= a[i * n + k] * a[j * n + k];
      if (i != j) {
        a[i * n + j] = sum / a[j * n + j];
      } else if (sum > 0.0) {
        a[i * n + i] = std::sqrt(sum);
      } else {
        return false;
      }
    }
  }
  return true;
}

// The lower triangular inverse of a lower triangular matrix.
std::vector<double> InvertLower(size_t n, const std::vector<double>& lower) {
  std::vector<double> inverse(n * n, 0.0);
  for (size_t j = 0; j < n; ++j) {
    inverse[j * n + j] = 1.0 / lower[j * n + j];
    for (size_t i = j + 1; i < n; ++i) {
      double sum = 0.0;
      for (size_t k = j; k < i; ++k) sum -= lower[i * n + k] * inverse[k * n + j];
      inverse[i * n + j] = sum / lower[i * n + i];
    }
  }
  return inverse;
}

// U with U^T U = C^-1. With the columns in reverse order C = L L^T, so that the inverse of L, read
// backwards in both directions, is U.
std::vector<float> InverseFactor(size_t n, const std::vector<double>& covariance) {
  std::vector<double> reversed(n * n);
  for (size_t i = 0; i < n * n; ++i) reversed[i] = covariance[n * n - 1 - i];
  if (!Cholesky(n, &reversed)) Fail("internal error: a covariance is not positive definite");
  const std::vector<double> inverse = InvertLower(n, reversed);
  std::vector<float> factor(n * n);
  for (size_t i = 0; i < n * n; ++i) factor[i] = static_cast<float>(inverse[n * n - 1 - i]);
  return factor;
}

InputModel::Group MakeGroup(const InputMoments& moments, size_t begin) {
  InputModel::Group group;
  group.begin = begin;
  const size_t n = group.width = std::min(kMomentGroup, moments.cols() - begin);
  std::vector<double> covariance(n * n);
  double trace = 0.0;
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) {
      covariance[i * n + j] = moments.MeanProduct(begin + i, begin + j) -
                              moments.Mean(begin + i) * moments.Mean(begin + j);
    }
    trace += covariance[i * n + i];
  }
  const double damping = trace > 0.0 ? kDamping * trace / static_cast<double>(n) : 1.0;
  for (size_t i = 0; i < n; ++i) covariance[i * n + i] += damping;
  group.covariance.assign(covariance.begin(), covariance.end());
  group.factor = InverseFactor(n, covariance);
  for (size_t i = 0; i < n; ++i) {
    const float u = group.factor[i * n + i];
    group.importance.push_back(1.0f / (u * u));
  }
  return group;
}

// One group of a row at work. A column's scale is that of its block.
struct RowWork {
  const InputModel::Group& group;
  const float* weights;          // [width], as they are wanted
  float lowest, highest;         // levels
  std::vector<float> rest;       // [width]: the weights with the errors of the columns before
  std::vector<float> scales;     // [width]
  std::vector<float> levels;     // [width], integers
  std::vector<float> gradients;  // [width]: (w - q) C

  RowWork(const InputModel::Group& g, const float* w, float low, float high)
      : group(g),
        weights(w),
        lowest(low),
        highest(high),
        rest(w, w + g.width),
        scales(g.width),
        levels(g.width),
        gradients(g.width) {}

  // The lowest of all for a NaN, which errors that overflow may make.
  float Round(float value, float scale) const {
    const float level = std::nearbyint(value / scale);
    return level >= lowest ? std::min(level, highest) : lowest;
  }

  // Columns [begin, end) get their levels; their errors go on to those that follow.
  void PassOn(size_t begin, size_t end) {
    const size_t n = group.width;
    for (size_t j = begin; j < end; ++j) {
      levels[j] = Round(rest[j], scales[j]);
      const float* u = group.factor.data() + j * n;
      const float error = (rest[j] - levels[j] * scales[j]) / u[j];
      AddScaled(-error, u + j + 1, n - j - 1, rest.data() + j + 1);
    }
  }

  // What the block's errors cost, those that its own later columns make up for taken off, when its
  // scale is `scale`.
  float BlockCost(size_t begin, size_t n, float scale) const {
    float values[kBlock];
    std::memcpy(values, rest.data() + begin, n * sizeof(float));
    float cost = 0.0f;
    for (size_t j = 0; j < n; ++j) {
      const float* u = group.factor.data() + (begin + j) * group.width + begin;
      const float error = (values[j] - Round(values[j], scale) * scale) / u[j];
      cost += error * error;
      AddScaled(-error, u + j + 1, n - j - 1, values + j + 1);
    }
    return cost;
  }

  // The best scale of a block near `searched`, which is best for columns rounded one by one.
  float BestScale(size_t begin, size_t n, float searched) const {
    float best = searched, least = BlockCost(begin, n, searched);
    for (const float factor : kScaleFactors) {
      const float scale = F32FromBf16(Bf16FromF32(searched * factor));
      if (!(std::fabs(scale) >= kSmallestInt4Scale && std::isfinite(scale))) continue;
      const float cost = BlockCost(begin, n, scale);
      if (!(cost < least)) continue;
      best = scale;
      least = cost;
    }
    return best;
  }

  void StartSweeps() {
    const size_t n = group.width;
    for (size_t j = 0; j < n; ++j) {
      const float error = weights[j] - levels[j] * scales[j];
      AddScaled(error, group.covariance.data() + j * n, n, gradients.data());
    }
  }

  // Every column takes the level that is best given all others.
  void SweepLevels() {
    const size_t n = group.width;
    for (size_t j = 0; j < n; ++j) {
      const float* c = group.covariance.data() + j * n;
      const float level = Round(levels[j] * scales[j] + gradients[j] / c[j], scales[j]);
      if (level == levels[j]) continue;
      AddScaled((levels[j] - level) * scales[j], c, n, gradients.data());
      levels[j] = level;
    }
  }

  // Every block takes the scale that is best given its levels and all other values.
  void SweepScales() {
    for (size_t begin = 0; begin < group.width; begin += kBlock) {
      const size_t n = std::min(kBlock, group.width - begin);
      float slope = 0.0f, curvature = 0.0f;
      for (size_t i = begin; i < begin + n; ++i) {
        const float* c = group.covariance.data() + i * group.width;
        slope += levels[i] * gradients[i];
        for (size_t j = begin; j < begin + n; ++j) curvature += levels[i] * c[j] * levels[j];
      }
      if (!(curvature > 0.0f)) continue;
      const float scale = F32FromBf16(Bf16FromF32(scales[begin] + slope / curvature));
      const float change = scale - scales[begin];
      const bool is_better = change * (change * curvature - 2 * slope) < 0.0f;
      if (!(is_better && std::fabs(scale) >= kSmallestInt4Scale && std::isfinite(scale))) continue;
      for (size_t j = begin; j < begin + n; ++j) {
        AddScaled(-change * levels[j], group.covariance.data() + j * group.width, group.width,
                  gradients.data());
        scales[j] = scale;
      }
    }
  }

  // Not finite when a value is not.
  double MeanError(const float* mean) const {
    double sum = 0.0;
    for (size_t j = 0; j < group.width; ++j) {
      const double value = static_cast<double>(levels[j] * scales[j]);
      if (!std::isfinite(value)) return value;
      sum += (static_cast<double>(weights[j]) - value) * static_cast<double>(mean[j]);
    }
    return sum;
  }
};

}  // namespace

InputModel::InputModel(const InputMoments& moments) {
  for (size_t c = 0; c < moments.cols(); ++c) mean_.push_back(static_cast<float>(moments.Mean(c)));
  for (size_t begin = 0; begin < moments.cols(); begin += kMomentGroup) {
    groups_.push_back(MakeGroup(moments, begin));
  }
}

float CompensateRowInt8(const float* weights, size_t cols, const InputModel& inputs, int8_t* out,
                        float* scale) {
  QuantizeRowInt8(weights, cols, out, scale);
  double shift = 0.0;
  for (const InputModel::Group& group : inputs.groups()) {
    RowWork work(group, weights + group.begin, -127.0f, 127.0f);
    std::fill(work.scales.begin(), work.scales.end(), *scale);
    work.PassOn(0, group.width);
    work.StartSweeps();
    for (int sweep = 0; sweep < kSweeps; ++sweep) work.SweepLevels();
    for (size_t j = 0; j < group.width; ++j) {
      out[group.begin + j] = static_cast<int8_t>(work.levels[j]);
    }
    shift += work.MeanError(inputs.mean().data() + group.begin);
  }
  if (std::isfinite(shift)) return static_cast<float>(shift);
  QuantizeRowInt8(weights, cols, out, scale);
  return 0.0f;
}

float CompensateRowInt4(const float* weights, size_t cols, const InputModel& inputs, uint8_t* out,
                        uint16_t* scales) {
  static_assert(kMomentGroup % kBlock == 0);
  std::fill(out, out + (cols + kBlock - 1) / kBlock * kBlock, uint8_t{8});
  double shift = 0.0;
  for (const InputModel::Group& group : inputs.groups()) {
    RowWork work(group, weights + group.begin, -8.0f, 7.0f);
    for (size_t begin = 0; begin < group.width; begin += kBlock) {
      const size_t n = std::min(kBlock, group.width - begin);
      uint8_t ignored[kBlock];
      uint16_t* scale = scales + (group.begin + begin) / kBlock;
      QuantizeRowInt4(work.rest.data() + begin, n, group.importance.data() + begin, ignored, scale);
      std::fill_n(work.scales.begin() + static_cast<ptrdiff_t>(begin), n,
                  work.BestScale(begin, n, F32FromBf16(*scale)));
      work.PassOn(begin, begin + n);
    }
    work.StartSweeps();
    for (int sweep = 0; sweep < kSweeps; ++sweep) {
      work.SweepLevels();
      if (sweep + 1 < kSweeps) work.SweepScales();
    }
    for (size_t j = 0; j < group.width; ++j) {
      out[group.begin + j] = static_cast<uint8_t>(static_cast<int>(work.levels[j]) + 8);
      scales[(group.begin + j) / kBlock] = Bf16FromF32(work.scales[j]);
    }
    shift += work.MeanError(inputs.mean().data() + group.begin);
  }
  if (std::isfinite(shift)) return static_cast<float>(shift);
  QuantizeRowInt4(weights, cols, nullptr, out, scales);
  return 0.0f;
}

}  // namespace arn::convert
