#include "converter/quantize/input_moments.h"

#include <algorithm>
#include <cstring>
#include <future>

namespace arn::convert {
namespace {

// Rows whose products are added up in f32 before they go to the sums, and the multiple of lanes
// that they are padded to.
constexpr size_t kRowsPerBatch = 128;
typedef float Vec __attribute__((vector_size(16)));
constexpr size_t kLanes = 4;
// Products that are worth another thread.
constexpr size_t kProductsPerThread = 1u << 20;

float Dot(const float* a, const float* b, size_t n) {
  Vec sums[2] = {};
  for (size_t i = 0; i < n; i += 2 * kLanes) {
    for (size_t s = 0; s < 2; ++s) {
      Vec x, y;
      std::memcpy(&x, a + i + s * kLanes, sizeof x);
      std::memcpy(&y, b + i + s * kLanes, sizeof y);
      sums[s] += x * y;
    }
  }
  const Vec sum = sums[0] + sums[1];
  return (sum[0] + sum[2]) + (sum[1] + sum[3]);
}

size_t GroupBegin(size_t col) { return col / kMomentGroup * kMomentGroup; }

}  // namespace

InputMoments::InputMoments(size_t cols) : sums_(cols, 0.0) {
  const size_t rest = cols % kMomentGroup;
  products_.resize((cols - rest) * kMomentGroup + rest * rest, 0.0);
}

size_t InputMoments::ProductsOf(size_t i) const {
  const size_t begin = GroupBegin(i);
  const size_t width = std::min(kMomentGroup, cols() - begin);
  return begin * kMomentGroup + (i - begin) * width;
}

double InputMoments::MeanProduct(size_t i, size_t j) const {
  const size_t low = std::min(i, j), high = std::max(i, j);
  return products_[ProductsOf(high) + low - GroupBegin(high)] / static_cast<double>(n_rows_);
}

void InputMoments::Add(const float* rows, size_t n_rows, uint32_t n_threads) {
  const size_t width = cols();
  std::vector<float> columns(width * kRowsPerBatch);  // one after another, zeros behind the rows
  for (size_t first = 0; first < n_rows; first += kRowsPerBatch) {
    const size_t n = std::min(kRowsPerBatch, n_rows - first);
    if (n < kRowsPerBatch) std::fill(columns.begin(), columns.end(), 0.0f);
    for (size_t r = 0; r < n; ++r) {
      const float* row = rows + (first + r) * width;
      for (size_t c = 0; c < width; ++c) {
        columns[c * kRowsPerBatch + r] = row[c];
        sums_[c] += static_cast<double>(row[c]);
      }
    }
    const size_t padded = (n + 2 * kLanes - 1) / (2 * kLanes) * (2 * kLanes);
    // Column i's products with those before it, so that the work grows with i: every n-th column.
    const auto add = [&](size_t begin, size_t step) {
      for (size_t i = begin; i < width; i += step) {
        double* out = products_.data() + ProductsOf(i);
        const float* column = columns.data() + i * kRowsPerBatch;
        for (size_t j = GroupBegin(i); j <= i; ++j) {
          *out++ += static_cast<double>(Dot(column, columns.data() + j * kRowsPerBatch, padded));
        }
      }
    };
    const size_t products = width * std::min(width, kMomentGroup) / 2 * n;
    const size_t threads = std::clamp<size_t>(products / kProductsPerThread, 1, n_threads);
    std::vector<std::future<void>> others;
    for (size_t t = 1; t < threads; ++t) {
      others.push_back(std::async(std::launch::async, add, t, threads));
    }
    add(0, threads);
    for (std::future<void>& other : others) other.get();
  }
  n_rows_ += n_rows;
}

}  // namespace arn::convert
