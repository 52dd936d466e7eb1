#include "converter/quantize/input_moments.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "converter/base/on_threads.h"

namespace arn::convert {
namespace {

// Rows accumulated in f32 before they are added to the double sums.
constexpr size_t kRowsPerBatch = 128;
typedef float Vec __attribute__((vector_size(16)));
constexpr size_t kLanes = 4;
// Minimum multiplications per extra thread.
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

// Transposes a batch of rows: each column contiguous, padded with zeros.
void Transpose(const float* rows, size_t n_rows, size_t width, std::vector<float>* columns) {
  columns->assign(width * kRowsPerBatch, 0.0f);
  for (size_t r = 0; r < n_rows; ++r) {
    for (size_t c = 0; c < width; ++c) (*columns)[c * kRowsPerBatch + r] = rows[r * width + c];
  }
}

}  // namespace

InputMoments::InputMoments(size_t cols) : cols_(cols) {
  const size_t rest = cols % kMomentGroup;
  products_.resize((cols - rest) * kMomentGroup + rest * rest, 0.0);
}

size_t InputMoments::ProductsOf(size_t i) const {
  const size_t begin = GroupBegin(i);
  const size_t width = std::min(kMomentGroup, cols_ - begin);
  return begin * kMomentGroup + (i - begin) * width;
}

double InputMoments::MeanProduct(size_t i, size_t j) const {
  const size_t low = std::min(i, j), high = std::max(i, j);
  return products_[ProductsOf(high) + low - GroupBegin(high)] / static_cast<double>(n_rows_);
}

double InputMoments::MeanErrorProduct(size_t i, size_t j) const {
  return errors_[ProductsOf(i) + j - GroupBegin(i)] / static_cast<double>(n_rows_);
}

void InputMoments::Add(const float* rows, const float* exact, size_t n_rows, uint32_t n_threads) {
  if (exact != nullptr) errors_.resize(products_.size(), 0.0);
  std::vector<float> columns, differences;
  for (size_t first = 0; first < n_rows; first += kRowsPerBatch) {
    const size_t n = std::min(kRowsPerBatch, n_rows - first);
    Transpose(rows + first * cols_, n, cols_, &columns);
    if (exact != nullptr) {
      Transpose(exact + first * cols_, n, cols_, &differences);
      for (size_t i = 0; i < columns.size(); ++i) differences[i] -= columns[i];
    }
    const size_t padded = (n + 2 * kLanes - 1) / (2 * kLanes) * (2 * kLanes);
    // Column i is multiplied with the columns before it, so the work grows with i: deals every n-th
    // column to a thread.
    const auto add = [&](size_t begin, size_t step) {
      for (size_t i = begin; i < cols_; i += step) {
        const size_t group = GroupBegin(i), end = std::min(group + kMomentGroup, cols_);
        double* out = products_.data() + ProductsOf(i);
        const float* column = columns.data() + i * kRowsPerBatch;
        for (size_t j = group; j <= i; ++j) {
          *out++ += static_cast<double>(Dot(column, columns.data() + j * kRowsPerBatch, padded));
        }
        if (exact == nullptr) continue;
        out = errors_.data() + ProductsOf(i);
        column = differences.data() + i * kRowsPerBatch;
        for (size_t j = group; j < end; ++j) {
          *out++ += static_cast<double>(Dot(column, columns.data() + j * kRowsPerBatch, padded));
        }
      }
    };
    const size_t products = cols_ * std::min(cols_, kMomentGroup) / 2 * n;
    OnThreads(std::clamp<size_t>(products / kProductsPerThread, 1, n_threads), add);
  }
  n_rows_ += n_rows;
  if (exact != nullptr) n_exact_ += n_rows;
}

double InputMoments::MeanSumErrorProduct(size_t r, size_t j) const {
  return static_cast<double>(sum_errors_[r * cols_ + j]) / static_cast<double>(n_rows_);
}

std::vector<float> InputMoments::TakeMeanSumErrors() && {
  const auto n_rows = static_cast<double>(n_rows_);
  for (float& value : sum_errors_) {
    value = static_cast<float>(static_cast<double>(value) / n_rows);
  }
  return std::move(sum_errors_);
}

void InputMoments::AddSums(const float* rows, const float* sums, const float* exact_sums,
                           size_t n_rows, size_t out_cols, uint32_t n_threads) {
  sum_errors_.resize(out_cols * cols_, 0.0f);
  std::vector<float> columns, differences, before;
  for (size_t first = 0; first < n_rows; first += kRowsPerBatch) {
    const size_t n = std::min(kRowsPerBatch, n_rows - first);
    Transpose(rows + first * cols_, n, cols_, &columns);
    Transpose(exact_sums + first * out_cols, n, out_cols, &differences);
    Transpose(sums + first * out_cols, n, out_cols, &before);
    for (size_t i = 0; i < before.size(); ++i) differences[i] -= before[i];
    const size_t padded = (n + 2 * kLanes - 1) / (2 * kLanes) * (2 * kLanes);
    const auto add = [&](size_t begin, size_t step) {
      for (size_t r = begin; r < out_cols; r += step) {
        const float* column = differences.data() + r * kRowsPerBatch;
        float* out = sum_errors_.data() + r * cols_;
        for (size_t j = 0; j < cols_; ++j) {
          out[j] += Dot(column, columns.data() + j * kRowsPerBatch, padded);
        }
      }
    };
    const size_t products = cols_ * out_cols * n;
    OnThreads(std::clamp<size_t>(products / kProductsPerThread, 1, n_threads), add);
  }
  n_sums_ += n_rows;
}

}  // namespace arn::convert
