#include <cstring>

#include "kernels/pack/pack.h"
#include "kernels/reference/ops.h"

namespace arn::reference {

void Embed(int32_t token, const float* embedding, uint32_t position, const Weight& weight,
           float factor, const float* positions, float* out) {
  if (embedding != nullptr) {
    std::memcpy(out, embedding, weight.cols * sizeof(float));
  } else {
    UnpackRowF32(weight, token < 0 ? 0 : static_cast<uint32_t>(token), out);
    for (uint32_t i = 0; i < weight.cols; ++i) out[i] *= factor;
  }
  if (positions == nullptr) return;
  const float* row = positions + uint64_t{position} * weight.cols;
  for (uint32_t i = 0; i < weight.cols; ++i) out[i] += row[i];
}

}  // namespace arn::reference
