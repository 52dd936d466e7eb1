#include <cmath>
#include <cstring>

#include "kernels/kv_page.h"
#include "kernels/reference/ops.h"
#include "platform/base/arith.h"

namespace arn::reference {
namespace {

double Element(const std::byte* values, const float* scales, DType dtype, uint32_t slot,
               uint32_t head_dim, uint32_t i) {
  const std::byte* at = values + (uint64_t{slot} * head_dim + i) * ElementBytes(dtype);
  if (dtype == DType::kF32) {
    float x;
    std::memcpy(&x, at, sizeof x);
    return static_cast<double>(x);
  }
  if (dtype == DType::kF16) {
    uint16_t x;
    std::memcpy(&x, at, sizeof x);
    return static_cast<double>(F32FromF16(x));
  }
  return static_cast<double>(static_cast<int8_t>(*at)) * static_cast<double>(scales[slot]);
}

}  // namespace

void Attention(const AttentionArgs& args, const float* q, float* out, float* scratch) {
  const AttentionKind& kind = *args.kind;
  const KvGroup& group = *args.group;
  const uint32_t dim = kind.head_dim;
  const uint32_t first = FirstSeen(args.position, kind, group, *args.table);
  auto page_at = [&](uint32_t position, uint32_t kv_head) {
    return KvPageAt(group, args.pool, KvPageOf(group, *args.table, position), args.group_layer,
                    kv_head);
  };
  for (uint32_t h = 0; h < kind.n_heads; ++h) {
    const uint32_t kv_head = h / (kind.n_heads / kind.n_kv_heads);
    const float* query = q + uint64_t{h} * dim;
    float largest = -INFINITY;
    for (uint32_t p = first; p <= args.position; ++p) {
      const KvHeadPage page = page_at(p, kv_head);
      double dot = 0.0;
      for (uint32_t i = 0; i < dim; ++i) {
        dot += static_cast<double>(query[i]) *
               Element(page.k, page.k_scale, group.dtype, p % group.page_tokens, dim, i);
      }
      scratch[p - first] = static_cast<float>(dot * static_cast<double>(kind.scale));
      largest = Max(largest, scratch[p - first]);
    }
    double sum = 0.0;
    for (uint32_t p = first; p <= args.position; ++p) {
      scratch[p - first] = std::exp(scratch[p - first] - largest);
      sum += static_cast<double>(scratch[p - first]);
    }
    for (uint32_t i = 0; i < dim; ++i) {
      double y = 0.0;
      for (uint32_t p = first; p <= args.position; ++p) {
        const KvHeadPage page = page_at(p, kv_head);
        y += static_cast<double>(scratch[p - first]) *
             Element(page.v, page.v_scale, group.dtype, p % group.page_tokens, dim, i);
      }
      out[uint64_t{h} * dim + i] = static_cast<float>(y / sum);
    }
  }
}

}  // namespace arn::reference
