#include "kernels/reference/ops.h"

namespace arn::reference {

// Causal depthwise convolution: torch.nn.Conv1d(groups = channels) with taps - 1 zeros on the left.
// With b and c, the gated short convolution of LFM2 (Liquid AI, 2025; transformers' Lfm2ShortConv).
void Conv(const ConvArgs& a) {
  const uint32_t width = a.width, kept = a.taps - 1;
  // Returns an input of the extended sequence: first the state's inputs, oldest first, then the
  // rows of this run.
  const auto input = [&](uint32_t row_and_kept, uint32_t c) {
    if (row_and_kept < kept) {
      return a.state.from == nullptr ? 0.0f : a.state.from[uint64_t{row_and_kept} * width + c];
    }
    const uint64_t at = (row_and_kept - kept) * a.in_stride + c;
    return a.b != nullptr ? a.b[at] * a.x[at] : a.x[at];
  };
  for (uint32_t t = 0; t < a.n_rows; ++t) {
    for (uint32_t c = 0; c < width; ++c) {
      float sum = a.bias == nullptr ? 0.0f : a.bias[c];
      for (uint32_t k = 0; k < a.taps; ++k)
        sum += a.weight[uint64_t{k} * width + c] * input(t + k, c);
      if (a.c != nullptr) sum *= a.c[t * a.in_stride + c];
      a.out[uint64_t{t} * width + c] = sum;
    }
  }
  for (uint32_t k = 0; k < kept; ++k) {
    for (uint32_t c = 0; c < width; ++c)
      a.state.to[uint64_t{k} * width + c] = input(a.n_rows + k, c);
  }
}

}  // namespace arn::reference
