#include <cmath>

#include "kernels/reference/ops.h"

namespace arn::reference {

// Gu and Dao, "Mamba: Linear-Time Sequence Modeling with Selective State Spaces", 2023, algorithm
// 2. A is diagonal, discretised by zero-order hold; B by Euler's rule (as in transformers'
// MambaMixer):
//   dt = softplus(time step);  h[n] = exp(dt A[n]) h[n] + dt B[n] x;  y = sum_n C[n] h[n] + D x
void Scan(const ScanArgs& a) {
  for (uint32_t c = 0; c < a.width; ++c) {
    for (uint32_t n = 0; n < a.n_states; ++n) {
      const uint64_t at = uint64_t{n} * a.width + c;
      a.state.to[at] = a.state.from == nullptr ? 0.0f : a.state.from[at];
    }
    for (uint32_t t = 0; t < a.n_rows; ++t) {
      const float in = a.x[uint64_t{t} * a.width + c];
      const auto step = static_cast<double>(a.time_steps[uint64_t{t} * a.width + c]);
      const double dt = std::fmax(step, 0.0) + std::log1p(std::exp(-std::fabs(step)));
      const float* b = a.mix + uint64_t{t} * 2 * a.n_states;
      double y = static_cast<double>(a.skip[c]) * static_cast<double>(in);
      for (uint32_t n = 0; n < a.n_states; ++n) {
        const uint64_t at = uint64_t{n} * a.width + c;
        const double decay = std::exp(dt * static_cast<double>(a.rates[at]));
        const double added = dt * static_cast<double>(b[n]) * static_cast<double>(in);
        const double h = decay * static_cast<double>(a.state.to[at]) + added;
        a.state.to[at] = static_cast<float>(h);
        y += static_cast<double>(b[a.n_states + n]) * h;
      }
      a.out[t * a.out_stride + c] = static_cast<float>(y);
    }
  }
}

}  // namespace arn::reference
