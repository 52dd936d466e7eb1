#include "kernels/contract/logits_ops.h"

#include "kernels/math/exp_f32.h"
#include "kernels/reference/backend_reference.h"

namespace arn {
namespace {

uint32_t Argmax(const float* logits, size_t n) {
  size_t best = 0;
  for (size_t i = 1; i < n; ++i) {
    // Also true if the best so far is NaN and this element is a number.
    if (!(logits[i] <= logits[best]) && logits[i] == logits[i]) best = i;
  }
  return static_cast<uint32_t>(best);
}

size_t CollectAtLeast(const float* logits, size_t n, float threshold, uint32_t* out,
                      size_t capacity) {
  size_t count = 0;
  for (size_t i = 0; i < n; ++i) {
    if (!(logits[i] >= threshold)) continue;
    if (count < capacity) out[count] = static_cast<uint32_t>(i);
    ++count;
  }
  return count;
}

// Sixteen partial sums (element i goes to sum i % 16), added pairwise: SIMD code of any vector
// width can reproduce this order.
double ExpSum(float* x, size_t n, float max, float inverse_temperature) {
  double sums[16] = {};
  for (size_t i = 0; i < n; ++i) {
    x[i] = ExpF32((x[i] - max) * inverse_temperature);
    sums[i % 16] += static_cast<double>(x[i]);
  }
  for (size_t width = 8; width > 0; width /= 2) {
    for (size_t i = 0; i < width; ++i) sums[i] += sums[i + width];
  }
  return sums[0];
}

constexpr LogitsOps kOps = {Argmax, CollectAtLeast, ExpSum};

}  // namespace

const LogitsOps* ReferenceLogitsOps() { return &kOps; }

}  // namespace arn
