// What samplers need from a vector of logits, as a table so that the runtime sees no backend. One
// table is scalar (kernels/reference), one SIMD (kernels/cpu); both give identical results.
#pragma once

#include <cstddef>
#include <cstdint>

namespace arn {

struct LogitsOps {
  // Index of the largest element, the lowest index on ties. NaN never wins. n > 0.
  uint32_t (*argmax)(const float* logits, size_t n);
  // Writes the indices (ascending) of elements >= threshold to `out` until `capacity` are written;
  // returns how many there are in all, which may exceed capacity.
  size_t (*collect_at_least)(const float* logits, size_t n, float threshold, uint32_t* out,
                             size_t capacity);
  // In place: x[i] = exp((x[i] - max) * inverse_temperature); returns the sum. n > 0.
  double (*exp_sum)(float* x, size_t n, float max, float inverse_temperature);
};

}  // namespace arn
