#include <cmath>

#include "kernels/contract/ops.h"
#include "platform/base/arith.h"

namespace arn {
namespace {

constexpr uint32_t kColumns = 64;  // summed at once, in double

// Returns what the sum of the weighted rows is divided by.
double DivisorOf(PoolMode mode, uint32_t n_rows) {
  const double n = n_rows;
  if (mode == PoolMode::kMeanSqrt) return std::sqrt(n);
  return mode == PoolMode::kWeightedMean ? n * (n + 1) / 2 : n;
}

void PoolColumns(PoolMode mode, const float* rows, uint32_t n_rows, uint32_t width, uint32_t n,
                 float* out) {
  double sums[kColumns] = {};
  for (uint32_t r = 0; r < n_rows; ++r) {
    const float* row = rows + uint64_t{r} * width;
    const double weight = mode == PoolMode::kWeightedMean ? r + 1.0 : 1.0;
    for (uint32_t i = 0; i < n; ++i) {
      const auto x = static_cast<double>(row[i]);
      if (mode == PoolMode::kMax) {
        sums[i] = r == 0 ? x : Max(sums[i], x);
      } else {
        sums[i] += weight * x;
      }
    }
  }
  const double divisor = mode == PoolMode::kMax ? 1.0 : DivisorOf(mode, n_rows);
  for (uint32_t i = 0; i < n; ++i) out[i] = static_cast<float>(sums[i] / divisor);
}

}  // namespace

void PoolRows(PoolMode mode, const float* rows, uint32_t n_rows, uint32_t width, float* out) {
  if (mode == PoolMode::kFirst || mode == PoolMode::kLast) {
    const float* row = rows + (mode == PoolMode::kFirst ? 0 : uint64_t{n_rows - 1} * width);
    for (uint32_t i = 0; i < width; ++i) out[i] = row[i];
    return;
  }
  for (uint32_t first = 0; first < width; first += kColumns) {
    PoolColumns(mode, rows + first, n_rows, width, Min(kColumns, width - first), out + first);
  }
}

}  // namespace arn
