// Quantises a row with known inputs: minimises the error of the matmul, not of each weight, so that
// the error of one column can compensate that of another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "converter/quantize/code_rows.h"
#include "converter/quantize/input_moments.h"

namespace arn::convert {

// Second moments C of a matrix's inputs, prepared for quantising its rows. A weight error w - q
// gives the dot product a mean square error of (w - q) C (w - q)^T, summed over groups of
// kMomentGroup columns.
class InputModel {
 public:
  // REQUIRES: moments.n_rows() is not 0. Adds 3% of the mean square to each diagonal element, so
  // that columns that the calibration text hardly uses keep some weight. n_outputs: rows of the
  // matrix.
  InputModel(InputMoments moments, size_t n_outputs);

  struct Group {
    size_t begin = 0, width = 0;
    std::vector<float> moments;  // [width, width]
    // U, upper triangular, with U^T U = inverse of the moments.
    std::vector<float> factor;         // [width, width]
    std::vector<float> block_factors;  // the same for each block's own moments: [width, 32], row by
                                       // row
    std::vector<float> importance;  // [width], 1 / U_jj^2: cost of an error in column j that later
                                    // columns cannot compensate
    std::vector<float> errors;      // [width, width]: mean of (exact_i - x_i) x_j; or empty
  };
  const std::vector<Group>& groups() const { return groups_; }
  // Returns the mean of (exact_sum_r - sum_r) x_j for output r: [cols]; null if unknown.
  const float* sum_errors(size_t r) const {
    return sum_errors_.empty() ? nullptr : sum_errors_.data() + r * cols();
  }
  size_t cols() const { return groups_.back().begin + groups_.back().width; }

 private:
  std::vector<Group> groups_;
  std::vector<float> sum_errors_;  // [outputs, cols], or empty
};

// Returns the weights of row r whose dot products with the actual inputs come closest to those of
// `weights` with the exact inputs: the least squares solution w + (w E + s) C^-1, where E is the
// mean of (exact - x) x^T and s the mean of the residual sum's error times x^T. Applies w E by
// kCorrection and s by kSumCorrection: the means come from one text, so a full correction overfits
// it, and later matrices correct the error of the sum too. Groups of columns share s evenly.
// Returns `weights` unchanged if the errors are unknown or a value overflows.
inline constexpr float kCorrection = 0.75f;
inline constexpr float kSumCorrection = 0.4f;
std::vector<float> CorrectRow(const float* weights, size_t cols, size_t r,
                              const InputModel& inputs);

// Same formats and ranges as QuantizeRowInt8 and QuantizeRowInt4 (quantize.h). Rounds columns in
// order and propagates the error of each to the later columns of its group (Frantar et al., "GPTQ",
// arXiv:2210.17323). An int4 block gets its scale when its first column is reached: searched with
// the importances, then refined nearby. Then runs three sweeps that give every column its best
// level and every block its best scale with all others fixed.
// `weights`: finite, [cols]; does not apply CorrectRow(). If the errors of very large weights
// overflow, quantises the row without the moments.
void CompensateRowInt8(const float* weights, size_t cols, const InputModel& inputs, int8_t* out,
                       float* scale);
void CompensateRowInt4(const float* weights, size_t cols, const InputModel& inputs, uint8_t* out,
                       uint16_t* scales);
// The same for what QuantizeRowCodes quantises, with blocks of 32.
void CompensateRowCodes(const CodeType& type, const float* weights, size_t cols,
                        const InputModel& inputs, const CodeRow& out);

}  // namespace arn::convert
