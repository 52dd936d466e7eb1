// Second moments of a matrix's inputs over a calibration text. They weigh the errors of the weights
// and let one error compensate another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace arn::convert {

// Columns per group; keeps only products within a group. The work for a row of n columns is n *
// kMomentGroup instead of n * n.
inline constexpr size_t kMomentGroup = 512;

class InputMoments {
 public:
  explicit InputMoments(size_t cols);

  // rows: [n_rows, cols], finite. exact: the same rows in the float model; null if unknown. The
  // result does not depend on n_threads.
  void Add(const float* rows, const float* exact, size_t n_rows, uint32_t n_threads);

  // For the rows of the last Add(): the accumulator that the matmul result is added to, actual and
  // exact; both [n_rows, out_cols]. out_cols must be the same for all rows.
  void AddSums(const float* rows, const float* sums, const float* exact_sums, size_t n_rows,
               size_t out_cols, uint32_t n_threads);

  size_t cols() const { return cols_; }
  uint64_t n_rows() const { return n_rows_; }
  // Returns the mean of x_i x_j over all rows. REQUIRES: both columns in one group of kMomentGroup.
  double MeanProduct(size_t i, size_t j) const;
  // True if all rows came with exact rows.
  bool knows_errors() const { return n_exact_ == n_rows_ && n_rows_ != 0; }
  // Returns the mean of (exact_i - x_i) x_j. REQUIRES: knows_errors().
  double MeanErrorProduct(size_t i, size_t j) const;
  // True if all rows came with sums, too.
  bool knows_sum_errors() const { return knows_errors() && n_sums_ == n_rows_; }
  // Returns the mean of (exact_sum_r - sum_r) x_j. REQUIRES: knows_sum_errors().
  double MeanSumErrorProduct(size_t r, size_t j) const;
  // Returns all of them, [out_cols, cols], in the memory of their sums.
  std::vector<float> TakeMeanSumErrors() &&;

 private:
  // Returns the index of column i's first product with a column of its group.
  size_t ProductsOf(size_t i) const;

  size_t cols_;
  uint64_t n_rows_ = 0, n_exact_ = 0, n_sums_ = 0;
  std::vector<double> products_;   // group by group, [columns, columns], only j <= i
  std::vector<double> errors_;     // the same layout, all j; empty before the first exact rows
  std::vector<float> sum_errors_;  // [out_cols, cols]; empty before the first sums
};

}  // namespace arn::convert
