#include <cmath>

#include "kernels/reference/ops.h"

namespace arn::reference {

// As in transformers (modeling_rope_utils.py, rotary embedding modules): the angle is a product of
// two f32; cos and sin are scaled by the attention factor. Pairs that turn by a position of their
// own: M-RoPE (arXiv:2409.12191), 2-D RoPE of vision towers.
void RopeAngles(uint32_t position, const uint32_t* axis_positions, const RopeKind& rope,
                float* out) {
  const uint32_t half = rope.rotary_dim / 2;
  for (uint32_t i = 0; i < half; ++i) {
    const uint32_t p = axis_positions == nullptr ? position : axis_positions[rope.axes[i]];
    const float angle = static_cast<float>(p) * rope.inv_freq[i];
    out[i] = std::cos(angle) * rope.amplitude;
    out[half + i] = std::sin(angle) * rope.amplitude;
  }
}

}  // namespace arn::reference
