// What a matrix's inputs look like: their second moments over a text that was run. They say which
// errors of the weights matter, and how one error can make up for another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace arn::convert {

// Columns whose products with each other are kept: the work for a row of n columns is
// n * kMomentGroup, and not n * n.
inline constexpr size_t kMomentGroup = 512;

class InputMoments {
 public:
  explicit InputMoments(size_t cols);

  // rows: [n_rows, cols], finite. exact: the same, what these rows would be without any error; null
  // when that is not known. The result does not depend on n_threads.
  void Add(const float* rows, const float* exact, size_t n_rows, uint32_t n_threads);

  // Of the same rows: what their products are added to, as it is and as it would be without any
  // error; both [n_rows, out_cols]. out_cols is the same for all rows.
  void AddSums(const float* rows, const float* sums, const float* exact_sums, size_t n_rows,
               size_t out_cols, uint32_t n_threads);

  size_t cols() const { return cols_; }
  uint64_t n_rows() const { return n_rows_; }
  // The mean of x_i x_j over all rows; both columns lie in one group of kMomentGroup.
  double MeanProduct(size_t i, size_t j) const;
  // Whether all rows came with their exact ones.
  bool knows_errors() const { return n_exact_ == n_rows_ && n_rows_ != 0; }
  // The mean of (exact_i - x_i) x_j, if all are known.
  double MeanErrorProduct(size_t i, size_t j) const;
  // Whether all rows came with their sums, too.
  bool knows_sum_errors() const { return knows_errors() && n_sums_ == n_rows_; }
  // The mean of (exact_sum_r - sum_r) x_j, if all are known.
  double MeanSumErrorProduct(size_t r, size_t j) const;

 private:
  // Where column i's products with the columns of its group begin.
  size_t ProductsOf(size_t i) const;

  size_t cols_;
  uint64_t n_rows_ = 0, n_exact_ = 0, n_sums_ = 0;
  std::vector<double> products_;   // group by group, [columns, columns], j <= i alone
  std::vector<double> errors_;     // likewise, all j; empty before the first exact rows
  std::vector<float> sum_errors_;  // [out_cols, cols]; likewise
};

}  // namespace arn::convert
