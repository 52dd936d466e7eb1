#include <cmath>
#include <cstring>

#include "kernels/kv_page.h"
#include "kernels/reference/ops.h"
#include "platform/base/arith.h"

namespace arn::reference {
namespace {

// Su et al., "RoFormer", 2021, with pairs (i, i + rotary_dim / 2): transformers' rotate_half.
void Rotate(const float* angles, uint32_t rotary_dim, float* head) {
  const uint32_t half = rotary_dim / 2;
  for (uint32_t i = 0; i < half; ++i) {
    const float c = angles[i], s = angles[half + i];
    const float a = head[i], b = head[half + i];
    head[i] = a * c - b * s;
    head[half + i] = b * c + a * s;
  }
}

// One token of one kv head into its slot.
void Store(const float* x, DType dtype, uint32_t slot, uint32_t head_dim, std::byte* values,
           float* scales) {
  std::byte* out = values + uint64_t{slot} * head_dim * ElementBytes(dtype);
  if (dtype == DType::kF32) {
    std::memcpy(out, x, head_dim * sizeof(float));
    return;
  }
  if (dtype == DType::kF16) {
    for (uint32_t i = 0; i < head_dim; ++i) {
      const uint16_t half = F16FromF32(x[i]);
      std::memcpy(out + i * sizeof half, &half, sizeof half);
    }
    return;
  }
  float largest = 0.0f;
  for (uint32_t i = 0; i < head_dim; ++i) largest = Max(largest, std::fabs(x[i]));
  const float scale = largest / 127.0f;
  scales[slot] = scale;
  for (uint32_t i = 0; i < head_dim; ++i) {
    const float q = scale == 0.0f ? 0.0f : x[i] / scale;
    out[i] =
        static_cast<std::byte>(static_cast<int8_t>(std::nearbyintf(Max(-127.0f, Min(127.0f, q)))));
  }
}

}  // namespace

void QkvRope(const QkvRopeArgs& args, float* qkv) {
  const AttentionKind& kind = *args.kind;
  const uint32_t dim = kind.head_dim;
  for (uint32_t h = 0; h < kind.n_heads + kind.n_kv_heads; ++h) {
    float* head = qkv + uint64_t{h} * dim;
    const float* norm = h < kind.n_heads ? args.q_norm : args.k_norm;
    if (norm != nullptr) RmsNorm(head, norm, dim, args.epsilon, head);
    Rotate(args.angles, args.rotary_dim, head);
  }
  const KvGroup& group = *args.group;
  const uint32_t page = KvPageOf(group, *args.table, args.position);
  const uint32_t slot = args.position % group.page_tokens;
  const float* k = qkv + uint64_t{kind.n_heads} * dim;
  const float* v = k + uint64_t{kind.n_kv_heads} * dim;
  for (uint32_t h = 0; h < kind.n_kv_heads; ++h) {
    const KvHeadPage at = KvPageAt(group, args.pool, page, args.group_layer, h);
    Store(k + uint64_t{h} * dim, group.dtype, slot, dim, at.k, at.k_scale);
    Store(v + uint64_t{h} * dim, group.dtype, slot, dim, at.v, at.v_scale);
  }
}

}  // namespace arn::reference
