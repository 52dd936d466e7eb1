// Quantisation of a row whose inputs are known: what matters is not the error of each weight but
// that of the product, and there the error of one column can make up for that of another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "converter/quantize/input_moments.h"

namespace arn::convert {

// The mean and the covariance C of a matrix's inputs, made ready for its rows. The mean error of a
// product is (w - q) . mean, which a bias can take away; the rest has the variance
// (w - q) C (w - q)^T, summed over groups of kMomentGroup columns.
class InputModel {
 public:
  // moments.n_rows() is not 0. A hundredth of the mean variance is added to each, so that columns
  // that hardly vary in the calibration text keep some weight.
  explicit InputModel(const InputMoments& moments);

  struct Group {
    size_t begin = 0, width = 0;
    std::vector<float> covariance;  // [width, width]
    // U, upper triangular, with U^T U the inverse of the covariance.
    std::vector<float> factor;      // [width, width]
    std::vector<float> importance;  // [width], 1 / U_jj^2: the error of j that later columns cannot
                                    // make up for
  };
  const std::vector<Group>& groups() const { return groups_; }
  const std::vector<float>& mean() const { return mean_; }

 private:
  std::vector<Group> groups_;
  std::vector<float> mean_;
};

// As QuantizeRowInt8 and QuantizeRowInt4 (quantize.h), with the same ranges of values and scales.
// Columns are rounded one after another, and the error of each is passed on to those of its group
// that are still to come (Frantar et al., "GPTQ", arXiv:2210.17323); an int4 block gets its scale,
// searched with the importances and then near what that gave, when its turn comes. Then, three
// times over, every column takes the level and every block the scale that is best given all others.
// `weights`: finite, [cols].
//
// Return what is to be added to the row's bias: (w - q) . mean. A row of weights so large that its
// errors overflow is quantised without the moments, and gets 0.
float CompensateRowInt8(const float* weights, size_t cols, const InputModel& inputs, int8_t* out,
                        float* scale);
float CompensateRowInt4(const float* weights, size_t cols, const InputModel& inputs, uint8_t* out,
                        uint16_t* scales);

}  // namespace arn::convert
