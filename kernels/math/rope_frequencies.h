// Frequencies of rotary position embeddings, in float32 and in the order of operations of
// transformers' modeling_rope_utils.py. The converter computes a checkpoint's tables with them, and
// a session those of a longer context.
#pragma once

#include <cmath>
#include <cstdint>

namespace arn {

// Returns theta ^ (2 pair / dim), the inverse of the frequency of a pair. Exponent and result are
// float32, as in torch; the power is computed in double and rounded, so it is within one ulp of any
// correct float32 power.
inline float RopePeriod(double theta, uint32_t dim, uint32_t pair) {
  const float exponent = static_cast<float>(2 * pair) / static_cast<float>(dim);
  return static_cast<float>(
      std::pow(static_cast<double>(static_cast<float>(theta)), static_cast<double>(exponent)));
}

// _compute_linear_scaling_rope_parameters: positions divided by `factor`.
inline float LinearRopeFrequency(double theta, uint32_t dim, uint32_t pair, float factor) {
  return 1.0f / RopePeriod(theta, dim, pair) / factor;
}

// _compute_yarn_parameters (Peng et al., https://arxiv.org/abs/2309.00071): frequencies that turn
// often within the original context stay, those that turn seldom are divided by `factor`, and a
// ramp joins them.
class YarnRope {
 public:
  struct Shape {
    double theta = 0;  // above 1
    uint32_t dim = 0;
    double context = 0;  // tokens the checkpoint was trained for
    double factor = 1;
    double fast_turns = 32;  // beta_fast
    double slow_turns = 1;   // beta_slow
    bool truncates = true;   // rounds the ends of the ramp to whole pairs
  };

  explicit YarnRope(const Shape& shape) : shape_(shape) {
    low_ = PairThatTurns(shape.fast_turns);
    high_ = PairThatTurns(shape.slow_turns);
    if (shape.truncates) {
      low_ = std::floor(low_);
      high_ = std::ceil(high_);
    }
    low_ = std::fmax(low_, 0.0);
    high_ = std::fmin(high_, shape.dim - 1.0);
    if (low_ == high_) high_ += 0.001;
  }

  float Frequency(uint32_t pair) const {
    const float period = RopePeriod(shape_.theta, shape_.dim, pair);
    const float extrapolated = 1.0f / period;
    const float interpolated = 1.0f / (static_cast<float>(shape_.factor) * period);
    const float ramp =
        (static_cast<float>(pair) - static_cast<float>(low_)) / static_cast<float>(high_ - low_);
    const float keep = 1.0f - std::fmin(std::fmax(ramp, 0.0f), 1.0f);
    return interpolated * (1.0f - keep) + extrapolated * keep;
  }

  // Returns the factor of q and k that keeps the attention's entropy.
  static double Amplitude(double factor, double mscale = 1.0) {
    return factor <= 1 ? 1.0 : 0.1 * mscale * std::log(factor) + 1.0;
  }

 private:
  double PairThatTurns(double turns) const {
    constexpr double kPi = 3.141592653589793;
    return shape_.dim * std::log(shape_.context / (turns * 2 * kPi)) / (2 * std::log(shape_.theta));
  }

  Shape shape_;
  double low_ = 0, high_ = 0;
};

}  // namespace arn
