#include "kernels/reference/ops.h"

namespace arn::reference {

void Im2col(const float* in, uint32_t rows, uint32_t width, const Im2colParams& params,
            uint32_t row, float* out) {
  for (uint32_t t = 0; t < params.n_taps; ++t) {
    const int64_t from = int64_t{row} * params.stride + t - params.padding;
    const bool exists = from >= 0 && from < int64_t{rows};
    for (uint32_t i = 0; i < width; ++i) {
      out[uint64_t{t} * width + i] = exists ? in[static_cast<uint64_t>(from) * width + i] : 0.0f;
    }
  }
}

}  // namespace arn::reference
