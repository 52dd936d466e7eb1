#include "kernels/contract/kv_page.h"
#include "kernels/kv/kv_rows.h"
#include "kernels/reference/ops.h"
#include "platform/base/arith.h"

namespace arn::reference {
namespace {

// RoPE: Su et al., "RoFormer", 2021, with pairs (i, i + rotary_dim / 2) as in transformers'
// rotate_half.
void Rotate(const float* angles, uint32_t rotary_dim, float* head) {
  const uint32_t half = rotary_dim / 2;
  for (uint32_t i = 0; i < half; ++i) {
    const float c = angles[i], s = angles[half + i];
    const float a = head[i], b = head[half + i];
    head[i] = a * c - b * s;
    head[half + i] = b * c + a * s;
  }
}

// RMSNorm over all q heads together, and over all k heads together.
void NormAllHeads(const QkvRopeArgs& args, float* qkv) {
  const AttentionKind& kind = *args.kind;
  const auto norm = [&](const float* weight, float* heads, uint32_t n_heads) {
    if (weight == nullptr) return;
    Norm({NormKind::kRms, weight, nullptr, args.epsilon, false}, heads, n_heads * kind.head_dim,
         heads);
  };
  norm(args.q_norm, qkv, kind.n_heads);
  if (!args.shares_kv) {
    norm(args.k_norm, qkv + uint64_t{kind.n_heads} * kind.head_dim, kind.n_kv_heads);
  }
}

// The norm of v heads that stay where they are.
void NormValues(const QkvRopeArgs& args, float* qkv) {
  if (args.v_norm == nullptr) return;
  const AttentionKind& kind = *args.kind;
  const NormArgs norm = {NormKind::kRms, args.v_norm, nullptr, args.epsilon, false};
  for (uint32_t h = 0; h < kind.n_kv_heads; ++h) {
    float* value = qkv + uint64_t{kind.n_heads + kind.n_kv_heads + h} * kind.head_dim;
    Norm(norm, value, kind.head_dim, value);
  }
}

}  // namespace

void QkvRope(const QkvRopeArgs& args, float* qkv) {
  const AttentionKind& kind = *args.kind;
  const uint32_t dim = kind.head_dim;
  const uint32_t rotated_heads = kind.n_heads + (args.shares_kv ? 0 : kind.n_kv_heads);
  if (args.norms_span_heads) NormAllHeads(args, qkv);
  if (kind.qkv_clip != 0.0f) {
    const uint32_t n_heads = kind.n_heads + (args.shares_kv ? 0 : 2 * kind.n_kv_heads);
    for (uint32_t i = 0; i < n_heads * dim; ++i) {
      qkv[i] = Max(-kind.qkv_clip, Min(qkv[i], kind.qkv_clip));
    }
  }
  for (uint32_t h = 0; h < rotated_heads; ++h) {
    float* head = qkv + uint64_t{h} * dim;
    const float* norm = h < kind.n_heads ? args.q_norm : args.k_norm;
    const NormArgs norm_args = {NormKind::kRms, norm, nullptr, args.epsilon, false};
    const bool has_norm = norm != nullptr && !args.norms_span_heads;
    if (has_norm && !kind.qk_norm_follows_rope) Norm(norm_args, head, dim, head);
    if (args.angles != nullptr) Rotate(args.angles, args.rotary_dim, head);
    if (has_norm && kind.qk_norm_follows_rope) Norm(norm_args, head, dim, head);
  }
  if (kind.query_temperature != 0.0f) {
    const float factor = QueryTemperature(kind, args.text_position);
    for (uint32_t i = 0; i < kind.n_heads * dim; ++i) qkv[i] *= factor;
  }
  if (args.shares_kv) return;
  if (args.group == nullptr) return NormValues(args, qkv);
  const KvGroup& group = *args.group;
  const uint32_t page = KvPageOf(group, *args.table, args.position);
  const uint32_t slot = args.position % group.page_tokens;
  const float* k = qkv + uint64_t{kind.n_heads} * dim;
  float* v = qkv + uint64_t{kind.n_heads + kind.n_kv_heads} * dim;
  for (uint32_t h = 0; h < kind.n_kv_heads; ++h) {
    const KvHeadPage at = KvPageAt(group, args.pools, page, args.group_layer, h);
    StoreKvRow(k + uint64_t{h} * dim, group, slot, at.k);
    if (group.keys_only) continue;
    float* value = v + uint64_t{h} * dim;
    const NormArgs norm = {NormKind::kRms, args.v_norm, nullptr, args.epsilon, false};
    if (args.v_norm != nullptr) Norm(norm, value, dim, value);
    StoreKvRow(value, group, slot, at.v);
  }
}

}  // namespace arn::reference
