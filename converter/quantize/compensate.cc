#include "converter/quantize/compensate.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "converter/base/error.h"
#include "converter/base/int4_scale.h"
#include "converter/quantize/code_rows.h"
#include "converter/quantize/quantize.h"
#include "kernels/contract/weight.h"
#include "platform/base/arith.h"

namespace arn::convert {
namespace {

constexpr double kDamping = 0.03;  // relative to the mean square
constexpr int kSweeps = 3;
constexpr size_t kBlock = kInt4BlockSize;
// Scales to try in addition to the searched one, as multiples of it. A negative factor puts the
// 16th level at the other end of the range.
constexpr float kScaleFactors[] = {0.95f, 0.9f,  0.85f,  0.8f,  1.05f,  1.1f,  1.15f,
                                   -1.0f, -0.9f, -0.85f, -0.8f, -0.95f, -1.1f, -1.15f};

typedef float Vec __attribute__((vector_size(16)));
constexpr size_t kLanes = 4;

// Computes y += factor * x.
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

// Replaces a symmetric positive definite matrix [n, n] by its lower Cholesky factor L; leaves the
// upper triangle unchanged. Returns false if the matrix is not positive definite.
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

// Returns the inverse of a lower triangular matrix, which is lower triangular.
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

// Returns U with U^T U = C^-1. With the columns in reverse order C = L L^T, so U is the inverse of
// L with rows and columns reversed.
std::vector<float> InverseFactor(size_t n, const std::vector<double>& moments) {
  std::vector<double> reversed(n * n);
  for (size_t i = 0; i < n * n; ++i) reversed[i] = moments[n * n - 1 - i];
  if (!Cholesky(n, &reversed)) Fail("internal error: the moments are not positive definite");
  const std::vector<double> inverse = InvertLower(n, reversed);
  std::vector<float> factor(n * n);
  for (size_t i = 0; i < n * n; ++i) factor[i] = static_cast<float>(inverse[n * n - 1 - i]);
  return factor;
}

InputModel::Group MakeGroup(const InputMoments& moments, size_t begin) {
  InputModel::Group group;
  group.begin = begin;
  const size_t n = group.width = std::min(kMomentGroup, moments.cols() - begin);
  std::vector<double> products(n * n);
  double trace = 0.0;
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) products[i * n + j] = moments.MeanProduct(begin + i, begin + j);
    trace += products[i * n + i];
  }
  const double damping = trace > 0.0 ? kDamping * trace / static_cast<double>(n) : 1.0;
  for (size_t i = 0; i < n; ++i) products[i * n + i] += damping;
  group.moments.assign(products.begin(), products.end());
  group.factor = InverseFactor(n, products);
  for (size_t i = 0; i < n; ++i) {
    const float u = group.factor[i * n + i];
    group.importance.push_back(1.0f / (u * u));
  }
  group.block_factors.resize(n * kBlock);
  for (size_t b = 0; b < n; b += kBlock) {
    const size_t width = std::min(kBlock, n - b);
    std::vector<double> own(width * width);
    for (size_t i = 0; i < width * width; ++i) {
      own[i] = products[(b + i / width) * n + b + i % width];
    }
    const std::vector<float> factor = InverseFactor(width, own);
    for (size_t i = 0; i < width; ++i) {
      std::copy_n(factor.data() + i * width, width, group.block_factors.data() + (b + i) * kBlock);
    }
  }
  group.errors.reserve(moments.knows_errors() ? n * n : 0);
  for (size_t i = 0; moments.knows_errors() && i < n * n; ++i) {
    group.errors.push_back(
        static_cast<float>(moments.MeanErrorProduct(begin + i / n, begin + i % n)));
  }
  return group;
}

// Rounds to the levels and scales of a type.
struct Grid {
  float lowest, highest;            // of levels that are whole numbers
  const CodeGrid* codes = nullptr;  // other levels

  // Returns the lowest level for a NaN, which overflowing errors can cause.
  float Round(float value, float scale) const {
    if (codes != nullptr) return codes->Level(value / scale);
    const float level = std::nearbyint(value / scale);
    return level >= lowest ? std::min(level, highest) : lowest;
  }
  // Returns the nearest scale that a block may have; 0: there is none.
  float ScaleNear(float scale) const {
    if (!std::isfinite(scale)) return 0.0f;
    if (codes != nullptr) return codes->Nearest(scale);
    const float rounded = F32FromBf16(Bf16FromF32(scale));
    return std::fabs(rounded) >= kSmallestInt4Scale && std::isfinite(rounded) ? rounded : 0.0f;
  }
};

// State of one row within one group. A column's scale is its block's.
struct RowWork {
  const InputModel::Group& group;
  const float* weights;  // [width]: the target weights
  const Grid grid;
  std::vector<float> rest;       // [width]: weights plus the propagated errors of earlier columns
  std::vector<float> scales;     // [width]
  std::vector<float> levels;     // [width], integers
  std::vector<float> gradients;  // [width]: (w - q) C

  RowWork(const InputModel::Group& g, const float* w, const Grid& of_type)
      : group(g),
        weights(w),
        grid(of_type),
        rest(w, w + g.width),
        scales(g.width),
        levels(g.width),
        gradients(g.width) {}

  float Round(float value, float scale) const { return grid.Round(value, scale); }

  // Rounds columns [begin, end) and propagates their errors to the later columns.
  void PassOn(size_t begin, size_t end) {
    const size_t n = group.width;
    for (size_t j = begin; j < end; ++j) {
      levels[j] = Round(rest[j], scales[j]);
      const float* u = group.factor.data() + j * n;
      const float error = (rest[j] - levels[j] * scales[j]) / u[j];
      AddScaled(-error, u + j + 1, n - j - 1, rest.data() + j + 1);
    }
  }

  // Returns the best scale of a block near `searched`, the best scale for rounding column by
  // column: the one of least cost after the later columns of the block compensate.
  float BestScale(size_t begin, size_t n, float searched) const {
    const float* factor = group.factor.data() + begin * group.width + begin;
    return FitBlock(rest.data() + begin, n, factor, group.width, searched, nullptr).scale;
  }

  struct BlockFit {
    float scale;
    float cost;
    float levels[kBlock];
  };
  // Rounds `values` column by column with each candidate scale, `near` first. U: [n, n], rows
  // `stride` apart. If `least` is given, only accepts a cost below it.
  BlockFit FitBlock(const float* values, size_t n, const float* u, size_t stride, float near,
                    const float* least) const {
    BlockFit best;
    best.scale = near;
    best.cost = least == nullptr ? std::numeric_limits<float>::infinity() : *least;
    const auto try_scale = [&](float scale) {
      float work[kBlock], chosen[kBlock];
      std::memcpy(work, values, n * sizeof(float));
      float cost = 0.0f;
      for (size_t j = 0; j < n; ++j) {
        const float* row = u + j * stride;
        chosen[j] = Round(work[j], scale);
        const float error = (work[j] - chosen[j] * scale) / row[j];
        cost += error * error;
        AddScaled(-error, row + j + 1, n - j - 1, work + j + 1);
      }
      if (!(cost < best.cost)) return;
      best.scale = scale;
      best.cost = cost;
      std::memcpy(best.levels, chosen, n * sizeof(float));
    };
    try_scale(near);
    for (const float factor : kScaleFactors) {
      const float scale = grid.ScaleNear(near * factor);
      if (scale != 0.0f) try_scale(scale);
    }
    return best;
  }

  void StartSweeps() {
    const size_t n = group.width;
    for (size_t j = 0; j < n; ++j) {
      const float error = weights[j] - levels[j] * scales[j];
      AddScaled(error, group.moments.data() + j * n, n, gradients.data());
    }
  }

  // Gives every column its best level with all others fixed.
  void SweepLevels() {
    const size_t n = group.width;
    for (size_t j = 0; j < n; ++j) {
      const float* c = group.moments.data() + j * n;
      const float level = Round(levels[j] * scales[j] + gradients[j] / c[j], scales[j]);
      if (level == levels[j]) continue;
      AddScaled((levels[j] - level) * scales[j], c, n, gradients.data());
      levels[j] = level;
    }
  }

  // Gives every block its best scale with its levels and all other values fixed.
  void SweepScales() {
    for (size_t begin = 0; begin < group.width; begin += kBlock) {
      const size_t n = std::min(kBlock, group.width - begin);
      float slope = 0.0f, curvature = 0.0f;
      for (size_t i = begin; i < begin + n; ++i) {
        const float* c = group.moments.data() + i * group.width;
        slope += levels[i] * gradients[i];
        for (size_t j = begin; j < begin + n; ++j) curvature += levels[i] * c[j] * levels[j];
      }
      if (!(curvature > 0.0f)) continue;
      const float scale = grid.ScaleNear(scales[begin] + slope / curvature);
      const float change = scale - scales[begin];
      const bool is_better = change * (change * curvature - 2 * slope) < 0.0f;
      if (!is_better || scale == 0.0f) continue;
      for (size_t j = begin; j < begin + n; ++j) {
        AddScaled(-change * levels[j], group.moments.data() + j * group.width, group.width,
                  gradients.data());
        scales[j] = scale;
      }
    }
  }

  // Rounds every block again, scale and levels together, with all values outside it fixed.
  void SweepBlocks() {
    for (size_t begin = 0; begin < group.width; begin += kBlock) {
      const size_t n = std::min(kBlock, group.width - begin);
      const float* u = group.block_factors.data() + begin * kBlock;
      // The optimum without rounding is the values plus (gradients U^T) U. The squared norm of
      // gradients U^T is the current cost of rounding.
      float wanted[kBlock], cost = 0.0f;
      for (size_t j = 0; j < n; ++j) wanted[j] = levels[begin + j] * scales[begin];
      for (size_t k = 0; k < n; ++k) {
        float halfway = 0.0f;
        for (size_t j = k; j < n; ++j) halfway += u[k * kBlock + j] * gradients[begin + j];
        cost += halfway * halfway;
        AddScaled(halfway, u + k * kBlock + k, n - k, wanted + k);
      }
      const float before = cost;
      const BlockFit fit = FitBlock(wanted, n, u, kBlock, scales[begin], &cost);
      if (!(fit.cost < before)) continue;
      for (size_t j = 0; j < n; ++j) {
        const size_t c = begin + j;
        const float change = fit.levels[j] * fit.scale - levels[c] * scales[c];
        AddScaled(-change, group.moments.data() + c * group.width, group.width, gradients.data());
        levels[c] = fit.levels[j];
        scales[c] = fit.scale;
      }
    }
  }

  // Improves all columns and blocks, which have been rounded.
  void Sweep() {
    StartSweeps();
    for (int sweep = 0; sweep < kSweeps; ++sweep) {
      SweepBlocks();
      SweepLevels();
      if (sweep + 1 < kSweeps) SweepScales();
    }
  }

  bool IsFinite() const {
    for (size_t j = 0; j < group.width; ++j) {
      if (!std::isfinite(levels[j] * scales[j])) return false;
    }
    return true;
  }
};

}  // namespace

InputModel::InputModel(InputMoments moments, size_t n_outputs) {
  for (size_t begin = 0; begin < moments.cols(); begin += kMomentGroup) {
    groups_.push_back(MakeGroup(moments, begin));
  }
  if (!moments.knows_sum_errors()) return;
  const size_t cols = moments.cols();
  sum_errors_ = std::move(moments).TakeMeanSumErrors();
  sum_errors_.resize(n_outputs * cols);
}

std::vector<float> CorrectRow(const float* weights, size_t cols, size_t r,
                              const InputModel& inputs) {
  std::vector<float> row(weights, weights + cols);
  // Each group alone could correct the whole sum error.
  const float share = kSumCorrection / static_cast<float>(inputs.groups().size());
  for (const InputModel::Group& group : inputs.groups()) {
    if (group.errors.empty()) continue;
    const size_t n = group.width;
    const float* w = weights + group.begin;
    // The error to correct, times U^T, times U.
    std::vector<float> products(n), halfway(n), correction(n);
    for (size_t i = 0; i < n; ++i) {
      AddScaled(kCorrection * w[i], group.errors.data() + i * n, n, products.data());
    }
    if (const float* missing = inputs.sum_errors(r); missing != nullptr) {
      AddScaled(share, missing + group.begin, n, products.data());
    }
    for (size_t k = 0; k < n; ++k) {
      const float* u = group.factor.data() + k * n;
      for (size_t j = k; j < n; ++j) halfway[k] += u[j] * products[j];
      AddScaled(halfway[k], u + k, n - k, correction.data() + k);
    }
    AddScaled(1.0f, correction.data(), n, row.data() + group.begin);
  }
  const bool is_finite = FindNotFinite(row.data(), cols) == cols;
  return is_finite ? row : std::vector<float>(weights, weights + cols);
}

void CompensateRowInt8(const float* weights, size_t cols, const InputModel& inputs, int8_t* out,
                       float* scale) {
  QuantizeRowInt8(weights, cols, out, scale);
  for (const InputModel::Group& group : inputs.groups()) {
    RowWork work(group, weights + group.begin, {-127.0f, 127.0f});
    std::fill(work.scales.begin(), work.scales.end(), *scale);
    work.PassOn(0, group.width);
    work.StartSweeps();
    for (int sweep = 0; sweep < kSweeps; ++sweep) work.SweepLevels();
    if (!work.IsFinite()) return QuantizeRowInt8(weights, cols, out, scale);
    for (size_t j = 0; j < group.width; ++j) {
      out[group.begin + j] = static_cast<int8_t>(work.levels[j]);
    }
  }
}

void CompensateRowInt4(const float* weights, size_t cols, const InputModel& inputs, uint8_t* out,
                       uint16_t* scales) {
  static_assert(kMomentGroup % kBlock == 0);
  std::fill(out, out + (cols + kBlock - 1) / kBlock * kBlock, uint8_t{8});
  for (const InputModel::Group& group : inputs.groups()) {
    RowWork work(group, weights + group.begin, {-8.0f, 7.0f});
    for (size_t begin = 0; begin < group.width; begin += kBlock) {
      const size_t n = std::min(kBlock, group.width - begin);
      uint8_t ignored[kBlock];
      uint16_t* scale = scales + (group.begin + begin) / kBlock;
      QuantizeRowInt4(work.rest.data() + begin, n, group.importance.data() + begin, ignored, scale);
      std::fill_n(work.scales.begin() + static_cast<ptrdiff_t>(begin), n,
                  work.BestScale(begin, n, F32FromBf16(*scale)));
      work.PassOn(begin, begin + n);
    }
    work.Sweep();
    if (!work.IsFinite()) return QuantizeRowInt4(weights, cols, nullptr, out, scales);
    for (size_t j = 0; j < group.width; ++j) {
      out[group.begin + j] = static_cast<uint8_t>(static_cast<int>(work.levels[j]) + 8);
      scales[(group.begin + j) / kBlock] = Bf16FromF32(work.scales[j]);
    }
  }
}

void CompensateRowCodes(const CodeType& type, const float* weights, size_t cols,
                        const InputModel& inputs, const CodeRow& out) {
  // The scale of the row comes from rounding the weights as they are; scales of blocks may be
  // larger by what earlier errors add.
  QuantizeRowCodes(type, weights, cols, nullptr, out);
  if (*out.row_scale == 0.0f) return;
  constexpr float kRoom = 1.1f;
  const CodeGrid codes(type, *out.row_scale * kRoom);
  const auto n_padded = static_cast<size_t>(type.Padded(cols));
  std::vector<uint8_t> found(n_padded, 0);
  std::vector<int16_t> scales(static_cast<size_t>(type.Blocks(cols)));
  for (const InputModel::Group& group : inputs.groups()) {
    RowWork work(group, weights + group.begin, {0.0f, 0.0f, &codes});
    for (size_t begin = 0; begin < group.width; begin += kBlock) {
      const size_t n = std::min(kBlock, group.width - begin);
      const float searched =
          SearchBlockScale(codes, work.rest.data() + begin, group.importance.data() + begin, n);
      std::fill_n(work.scales.begin() + static_cast<ptrdiff_t>(begin), n,
                  work.BestScale(begin, n, codes.Nearest(searched)));
      work.PassOn(begin, begin + n);
    }
    work.Sweep();
    if (!work.IsFinite()) return;
    for (size_t j = 0; j < group.width; ++j) {
      found[group.begin + j] = static_cast<uint8_t>(codes.CodeOfLevel(work.levels[j]));
      scales[(group.begin + j) / kBlock] = codes.Stored(work.scales[j]);
    }
  }
  *out.row_scale = codes.row_scale();
  std::copy(found.begin(), found.end(), out.codes);
  std::copy(scales.begin(), scales.end(), out.scales);
}

}  // namespace arn::convert
