// Operations a sampler needs on a vector of logits, as a table so that the runtime does not depend
// on a backend. kernels/reference has the scalar table, kernels/cpu the SIMD one; results are
// identical.
#pragma once

#include <cstddef>
#include <cstdint>

namespace arn {

struct LogitsOps {
  // Returns the index of the largest element, the lowest index on ties. NaN never wins. REQUIRES: n
  // > 0.
  uint32_t (*argmax)(const float* logits, size_t n);
  // Writes the indices of elements >= threshold to `out`, ascending, at most `capacity` of them.
  // Returns how many there are in total, which may exceed capacity.
  size_t (*collect_at_least)(const float* logits, size_t n, float threshold, uint32_t* out,
                             size_t capacity);
  // Replaces x[i] by exp((x[i] - max) * inverse_temperature). Returns the sum. REQUIRES: n > 0.
  double (*exp_sum)(float* x, size_t n, float max, float inverse_temperature);
};

}  // namespace arn
