// One token between the QKV matmul and attention: norm of heads, RoPE, append to the pages.
#include <cmath>
#include <cstring>

#include "kernels/contract/kv_page.h"
#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/simd/qkv_rope.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep

#include "kernels/cpu/simd/norm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace arn::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void Rotate(const float* angles, uint32_t rotary_dim, float* head) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d), half = rotary_dim / 2;
  for (size_t i = 0; i < half; i += lanes) {
    const size_t n = half - i;
    const auto c = hn::LoadN(d, angles + i, n), s = hn::LoadN(d, angles + half + i, n);
    const auto a = hn::LoadN(d, head + i, n), b = hn::LoadN(d, head + half + i, n);
    hn::StoreN(hn::Sub(hn::Mul(a, c), hn::Mul(b, s)), d, head + i, n);
    hn::StoreN(hn::Add(hn::Mul(b, c), hn::Mul(a, s)), d, head + half + i, n);
  }
}

void StoreF16(const float* x, uint32_t n, std::byte* out) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<hwy::float16_t, decltype(d)> d16;
  auto* to = reinterpret_cast<hwy::float16_t*>(out);
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(hn::DemoteTo(d16, hn::LoadU(d, x + i)), d16, to + i);
  }
  if (i < n) {
    hn::StoreN(hn::DemoteTo(d16, hn::LoadN(d, x + i, n - i)), d16, to + i, n - i);
  }
}

// Returns the scale.
float StoreInt8(const float* x, uint32_t n, std::byte* out) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<int8_t, decltype(d)> di8;
  auto* to = reinterpret_cast<int8_t*>(out);
  const size_t lanes = hn::Lanes(d);
  auto largest = hn::Zero(d);
  for (size_t i = 0; i < n; i += lanes) {
    largest = hn::Max(largest, hn::Abs(hn::LoadN(d, x + i, n - i)));
  }
  const float scale = hn::ReduceMax(d, largest) / 127.0f;
  if (scale == 0.0f) {
    std::memset(out, 0, n);
    return scale;
  }
  const auto divisor = hn::Set(d, scale), limit = hn::Set(d, 127.0f);
  for (size_t i = 0; i < n; i += lanes) {
    const auto q = hn::Div(hn::LoadN(d, x + i, n - i), divisor);
    const auto clamped = hn::Max(hn::Min(q, limit), hn::Neg(limit));
    hn::StoreN(hn::DemoteTo(di8, hn::NearestInt(clamped)), di8, to + i, n - i);
  }
  return scale;
}

void Append(const float* x, uint32_t n, uint32_t slot, const KvHeadBlock& block) {
  std::byte* out = block.values + uint64_t{slot} * n * ElementBytes(block.type);
  // CheckProgram has rejected other types.
  if (block.type == DType::kF32) {
    std::memcpy(out, x, n * sizeof(float));
  } else if (block.type == DType::kF16) {
    StoreF16(x, n, out);
  } else if (block.type == DType::kInt8) {
    static_cast<float*>(block.scales)[slot] = StoreInt8(x, n, out);
  }
}

void Clip(float* x, size_t n, float most) {
  const hn::ScalableTag<float> d;
  const auto high = hn::Set(d, most), low = hn::Set(d, -most);
  for (size_t i = 0; i < n; i += hn::Lanes(d)) {
    hn::StoreN(hn::Max(low, hn::Min(hn::LoadN(d, x + i, n - i), high)), d, x + i, n - i);
  }
}

// RMSNorm over all q heads together, and over all k heads together.
void NormAllHeads(const QkvRopeArgs& args, float* qkv) {
  const AttentionKind& kind = *args.kind;
  const size_t q_width = size_t{kind.n_heads} * kind.head_dim;
  if (args.q_norm != nullptr) NormRow(qkv, args.q_norm, q_width, args.epsilon, qkv);
  if (args.k_norm != nullptr && !args.shares_kv) {
    float* k = qkv + q_width;
    NormRow(k, args.k_norm, size_t{kind.n_kv_heads} * kind.head_dim, args.epsilon, k);
  }
}

// The norm of v heads that stay where they are.
void NormValues(const QkvRopeArgs& args, float* qkv) {
  if (args.v_norm == nullptr) return;
  const AttentionKind& kind = *args.kind;
  const size_t dim = kind.head_dim;
  for (uint32_t h = 0; h < kind.n_kv_heads; ++h) {
    float* value = qkv + (size_t{kind.n_heads} + kind.n_kv_heads + h) * dim;
    NormRow(value, args.v_norm, dim, args.epsilon, value);
  }
}

void QkvRope(const QkvRopeArgs& args, float* qkv) {
  const AttentionKind& kind = *args.kind;
  const size_t dim = kind.head_dim;
  const uint32_t rotated_heads = kind.n_heads + (args.shares_kv ? 0 : kind.n_kv_heads);
  if (args.norms_span_heads) NormAllHeads(args, qkv);
  if (kind.qkv_clip != 0.0f) {
    Clip(qkv, (kind.n_heads + (args.shares_kv ? 0 : 2 * kind.n_kv_heads)) * dim, kind.qkv_clip);
  }
  for (uint32_t h = 0; h < rotated_heads; ++h) {
    float* head = qkv + h * dim;
    const float* norm = h < kind.n_heads ? args.q_norm : args.k_norm;
    const bool has_norm = norm != nullptr && !args.norms_span_heads;
    if (has_norm && !kind.qk_norm_follows_rope) NormRow(head, norm, dim, args.epsilon, head);
    if (args.angles != nullptr) Rotate(args.angles, args.rotary_dim, head);
    if (has_norm && kind.qk_norm_follows_rope) NormRow(head, norm, dim, args.epsilon, head);
  }
  if (kind.query_temperature != 0.0f) {
    const float factor = QueryTemperature(kind, args.text_position);
    for (size_t i = 0; i < kind.n_heads * dim; ++i) qkv[i] *= factor;
  }
  if (args.shares_kv) return;
  if (args.group == nullptr) return NormValues(args, qkv);
  const KvGroup& group = *args.group;
  const uint32_t page = KvPageOf(group, *args.table, args.position);
  const uint32_t slot = args.position % group.page_tokens;
  const float* k = qkv + kind.n_heads * dim;
  float* v = qkv + (size_t{kind.n_heads} + kind.n_kv_heads) * dim;
  for (uint32_t h = 0; h < kind.n_kv_heads; ++h) {
    const KvHeadPage at = KvPageAt(group, args.pools, page, args.group_layer, h);
    Append(k + h * dim, group.head_dim, slot, at.k);
    if (group.keys_only) continue;
    float* value = v + h * dim;
    if (args.v_norm != nullptr) NormRow(value, args.v_norm, dim, args.epsilon, value);
    Append(value, group.head_dim, slot, at.v);
  }
}

}  // namespace arn::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace arn::cpu {

HWY_EXPORT(QkvRope);
QkvRopeFn ChooseQkvRope() { return HWY_DYNAMIC_POINTER(QkvRope); }

}  // namespace arn::cpu
#endif
