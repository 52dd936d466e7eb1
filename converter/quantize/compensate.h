// Quantisation of a row whose inputs are known: what matters is not the error of each weight but
// that of the product, and there the error of one column can make up for that of another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "converter/quantize/input_moments.h"

namespace arn::convert {

// The second moments C of a matrix's inputs, made ready for its rows. An error w - q of the weights
// makes one of the product with the mean square (w - q) C (w - q)^T, summed over groups of
// kMomentGroup columns.
class InputModel {
 public:
  // moments.n_rows() is not 0. Three hundredths of the mean square are added to each, so that
  // columns that are hardly used in the calibration text keep some weight.
  // n_outputs: rows of the matrix.
  InputModel(const InputMoments& moments, size_t n_outputs);

  struct Group {
    size_t begin = 0, width = 0;
    std::vector<float> moments;  // [width, width]
    // U, upper triangular, with U^T U the inverse of the moments.
    std::vector<float> factor;         // [width, width]
    std::vector<float> block_factors;  // likewise of each block's own moments: [width, 32], rows
    std::vector<float> importance;  // [width], 1 / U_jj^2: the error of j that later columns cannot
                                    // make up for
    std::vector<float> errors;      // [width, width]: the mean of (exact_i - x_i) x_j; or empty
  };
  const std::vector<Group>& groups() const { return groups_; }
  // The mean of (exact_sum_r - sum_r) x_j for output r: [cols]; null when it is not known.
  const float* sum_errors(size_t r) const {
    return sum_errors_.empty() ? nullptr : sum_errors_.data() + r * cols();
  }
  size_t cols() const { return groups_.back().begin + groups_.back().width; }

 private:
  std::vector<Group> groups_;
  std::vector<float> sum_errors_;  // [outputs, cols], or empty
};

// What row r is to be, so that what its products with the inputs as they are give comes as near as
// it can to what those of `weights` with the exact inputs would: the least squares solution
// w + (w E + s) C^-1, E being the mean of (exact - x) x^T, and s of what is missing in the sum that
// the products are added to, times x^T. Of w E kCorrection is taken and of s kSumCorrection,
// because the means are those of a text and a full correction follows what is peculiar to it; what
// is missing in the sum the matrices that follow see, too. Several groups of columns share the
// latter evenly. `weights` itself where the errors are not known or a value overflows.
inline constexpr float kCorrection = 0.75f;
inline constexpr float kSumCorrection = 0.4f;
std::vector<float> CorrectRow(const float* weights, size_t cols, size_t r,
                              const InputModel& inputs);

// As QuantizeRowInt8 and QuantizeRowInt4 (quantize.h), with the same ranges of values and scales.
// Columns are rounded one after another, and the error of each is passed on to those of its group
// that are still to come (Frantar et al., "GPTQ", arXiv:2210.17323); an int4 block gets its scale,
// searched with the importances and then near what that gave, when its turn comes. Then, three
// times over, every column takes the level and every block the scale that is best given all others.
// `weights`: finite, [cols]; CorrectRow() is not applied. A row of weights so large that its errors
// overflow is quantised without the moments.
void CompensateRowInt8(const float* weights, size_t cols, const InputModel& inputs, int8_t* out,
                       float* scale);
void CompensateRowInt4(const float* weights, size_t cols, const InputModel& inputs, uint8_t* out,
                       uint16_t* scales);

}  // namespace arn::convert
