// What a matrix's inputs look like: their mean and second moments over a text that was run. They
// say which errors of the weights matter, and how one error can make up for another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace arn::convert {

// Columns whose products with each other are kept: the memory of a matrix of n columns is about
// n * kMomentGroup * 8 bytes, and not n * n * 8.
inline constexpr size_t kMomentGroup = 512;

class InputMoments {
 public:
  explicit InputMoments(size_t cols);

  // rows: [n_rows, cols], finite. The result does not depend on n_threads.
  void Add(const float* rows, size_t n_rows, uint32_t n_threads);

  size_t cols() const { return sums_.size(); }
  uint64_t n_rows() const { return n_rows_; }
  double Mean(size_t col) const { return sums_[col] / static_cast<double>(n_rows_); }
  // The mean of x_i x_j over all rows; both columns lie in one group of kMomentGroup.
  double MeanProduct(size_t i, size_t j) const;

 private:
  // Where column i's products with the columns of its group begin.
  size_t ProductsOf(size_t i) const;

  uint64_t n_rows_ = 0;
  std::vector<double> sums_;      // [cols]
  std::vector<double> products_;  // group by group, [columns, columns], j <= i alone
};

// By the tensor's name in the bundle.
using Calibration = std::map<std::string, std::shared_ptr<InputMoments>>;

}  // namespace arn::convert
