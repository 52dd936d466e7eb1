#include <cmath>

#include "kernels/reference/ops.h"

namespace arn::reference {

// As in transformers (modeling_rope_utils.py, rotary embedding modules): the angle is a product of
// two f32; cos and sin are scaled by the attention factor.
void RopeAngles(uint32_t position, const RopeKind& rope, float* out) {
  const uint32_t half = rope.rotary_dim / 2;
  for (uint32_t i = 0; i < half; ++i) {
    const float angle = static_cast<float>(position) * rope.inv_freq[i];
    out[i] = std::cos(angle) * rope.amplitude;
    out[half + i] = std::sin(angle) * rope.amplitude;
  }
}

}  // namespace arn::reference
