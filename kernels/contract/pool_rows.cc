#include <cmath>
#include <cstring>

#include "kernels/contract/ops.h"
#include "platform/base/arith.h"

namespace arn {
namespace {

constexpr uint32_t kColumns = 64;  // summed at once, in double

// Returns what the sum of the weighted rows is divided by.
double DivisorOf(PoolKind mode, uint32_t n_rows) {
  const double n = n_rows;
  if (mode == PoolKind::kMeanSqrt) return std::sqrt(n);
  return mode == PoolKind::kWeightedMean ? n * (n + 1) / 2 : n;
}

void PoolColumns(PoolKind mode, const float* rows, uint32_t n_rows, uint32_t width, uint32_t n,
                 float* out) {
  double sums[kColumns] = {};
  for (uint32_t r = 0; r < n_rows; ++r) {
    const float* row = rows + uint64_t{r} * width;
    const double weight = mode == PoolKind::kWeightedMean ? r + 1.0 : 1.0;
    for (uint32_t i = 0; i < n; ++i) {
      const auto x = static_cast<double>(row[i]);
      if (mode == PoolKind::kMax) {
        sums[i] = r == 0 ? x : Max(sums[i], x);
      } else {
        sums[i] += weight * x;
      }
    }
  }
  const double divisor = mode == PoolKind::kMax ? 1.0 : DivisorOf(mode, n_rows);
  for (uint32_t i = 0; i < n; ++i) out[i] = static_cast<float>(sums[i] / divisor);
}

void Pool(PoolKind mode, const float* rows, uint32_t n_rows, uint32_t width, float* out) {
  if (mode == PoolKind::kConcat) {
    std::memcpy(out, rows, size_t{n_rows} * width * sizeof(float));
    return;
  }
  if (mode == PoolKind::kFirst || mode == PoolKind::kLast) {
    const float* row = rows + (mode == PoolKind::kFirst ? 0 : uint64_t{n_rows - 1} * width);
    for (uint32_t i = 0; i < width; ++i) out[i] = row[i];
    return;
  }
  for (uint32_t first = 0; first < width; first += kColumns) {
    PoolColumns(mode, rows + first, n_rows, width, Min(kColumns, width - first), out + first);
  }
}

}  // namespace

void PoolRows(const PoolArgs& args, const float* rows, uint32_t n_rows, uint32_t width,
              float* out) {
  Pool(args.mode, rows, n_rows, width, out);
  if (args.factor == 1.0f && args.shift == nullptr && args.scale == nullptr) return;
  const uint32_t out_width = args.mode == PoolKind::kConcat ? n_rows * width : width;
  for (uint32_t i = 0; i < out_width; ++i) {
    float x = out[i] * args.factor;
    if (args.shift != nullptr) x -= args.shift[i];
    if (args.scale != nullptr) x *= args.scale[i];
    out[i] = x;
  }
}

}  // namespace arn
