#include <cmath>

#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/simd/linear_attention.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep

#include "kernels/cpu/simd/exp-inl.h"
#include "kernels/cpu/simd/norm-inl.h"
#include "kernels/cpu/simd/softplus-inl.h"

HWY_BEFORE_NAMESPACE();
namespace arn::cpu::HWY_NAMESPACE {

// Tokens whose gates are computed together; a whole number of vectors.
constexpr size_t kBlock = 64;
// Two vectors are at most a panel of states.
using Floats = hwy::HWY_NAMESPACE::CappedTag<float, kStateColumns / 2>;

// Factors of one head for the tokens of a block.
struct BlockGates {
  HWY_ALIGN float decay[kBlock];
  HWY_ALIGN float added[kBlock];  // dt; beta for the delta rule
  HWY_ALIGN float q[kBlock];      // of the delta rule: 1 / (length of q * sqrt(key_dim))
  HWY_ALIGN float k[kBlock];      // likewise: 1 / length of k
};

void ComputeGates(const LinearAttentionArgs& a, uint32_t head, size_t first, size_t n,
                  BlockGates* out) {
  namespace hn = hwy::HWY_NAMESPACE;
  const Floats d;
  for (size_t i = 0; i < n; ++i) {
    const float* gates = a.gates + (first + i) * a.gates_stride;
    out->decay[i] = gates[head];
    out->added[i] = a.has_delta_rule ? gates[a.n_heads + head] : 0.0f;
  }
  const auto rate = hn::Set(d, a.heads[head]), bias = hn::Set(d, a.heads[a.n_heads + head]);
  const auto low = hn::Set(d, a.time_step_low), one = hn::Set(d, 1.0f);
  const auto most = hn::Set(d, a.beta_factor);
  for (size_t i = 0; i < n; i += hn::Lanes(d)) {
    auto dt = hn::Max(VecSoftplus(d, hn::Add(hn::Load(d, out->decay + i), bias)), low);
    if (a.time_step_high != 0.0f) dt = hn::Min(dt, hn::Set(d, a.time_step_high));
    hn::Store(VecExp(d, hn::Mul(dt, rate)), d, out->decay + i);
    if (a.has_delta_rule) {
      const auto e = VecExp(d, hn::Neg(hn::Load(d, out->added + i)));
      hn::Store(hn::Div(most, hn::Add(one, e)), d, out->added + i);
    } else {
      hn::Store(dt, d, out->added + i);
    }
  }
  if (!a.has_delta_rule) return;
  const float root = std::sqrt(static_cast<float>(a.key_dim));
  const size_t keys = size_t{a.n_heads} / a.heads_per_key * a.key_dim;
  for (size_t i = 0; i < n; ++i) {
    const float* q = a.in + (first + i) * a.in_stride + head / a.heads_per_key * a.key_dim;
    out->q[i] = 1.0f / (std::sqrt(SumOfSquares(q, a.key_dim) + kLengthEpsilon) * root);
    out->k[i] = 1.0f / std::sqrt(SumOfSquares(q + keys, a.key_dim) + kLengthEpsilon);
  }
}

// Up to two vectors of columns of one head's states. A token's states are read and written once:
// what the next token recalls is summed in the same pass. Sums run over the keys in order, so a
// token's result does not depend on the tokens it is computed with.
template <bool kDelta, bool kWhole>
class StateColumns {
 public:
  // n: columns; column: of the head. from: states before the first token of `gates`.
  StateColumns(const LinearAttentionTile& tile, const BlockGates& gates, size_t head, size_t column,
               size_t n, size_t stride)
      : tile_(tile), gates_(gates), stride_(stride) {
    const hwy::HWY_NAMESPACE::CappedTag<float, kStateColumns / 2> d;
    const size_t lanes = hwy::HWY_NAMESPACE::Lanes(d);
    n0_ = HWY_MIN(n, lanes);
    n1_ = n - n0_;
    const size_t keys = size_t{tile.n_heads} / tile.heads_per_key * tile.key_dim;
    q_ = head / tile.heads_per_key * tile.key_dim;
    k_ = q_ + keys;
    v_ = 2 * keys + head * tile.value_dim + column;
    out_ = head * tile.value_dim + column;
    skip_ = tile.has_skip ? tile.heads[2 * size_t{tile.n_heads} + head] : 0.0f;
  }

  // Runs n tokens from `first` on. from: the states before; may be `to`.
  void Run(size_t first, size_t n, const float* from, float* to) const {
    namespace hn = hwy::HWY_NAMESPACE;
    const Floats d;
    auto r0 = hn::Zero(d), r1 = hn::Zero(d);  // S^T k of the next token
    if (kDelta) {
      const float* k = In(first) + k_;
      for (size_t i = 0; i < tile_.key_dim; ++i) {
        const auto key = hn::Set(d, k[i]);
        r0 = hn::MulAdd(key, Load0(from + i * stride_), r0);
        r1 = hn::MulAdd(key, Load1(from + i * stride_), r1);
      }
    }
    for (size_t t = 0; t < n; ++t) {
      const float* in = In(first + t);
      const float *q = in + q_, *k = in + k_;
      // The last token has no next one: its own keys are multiplied to no effect.
      const float* next = t + 1 < n ? In(first + t + 1) + k_ : k;
      const auto decay = hn::Set(d, gates_.decay[t]), factor = hn::Set(d, gates_.added[t]);
      const auto v0 = Load0(in + v_), v1 = Load1(in + v_);
      auto u0 = hn::Mul(factor, v0), u1 = hn::Mul(factor, v1);
      if (kDelta) {
        const auto k_factor = hn::Set(d, gates_.k[t]);
        const auto recalled = hn::Mul(decay, k_factor), added = hn::Mul(factor, k_factor);
        u0 = hn::Mul(added, hn::NegMulAdd(recalled, r0, v0));
        u1 = hn::Mul(added, hn::NegMulAdd(recalled, r1, v1));
      }
      auto y0 = hn::Zero(d), y1 = y0;
      r0 = r1 = hn::Zero(d);
      for (size_t i = 0; i < tile_.key_dim; ++i) {
        const auto key = hn::Set(d, k[i]), query = hn::Set(d, q[i]);
        const auto s0 = hn::MulAdd(key, u0, hn::Mul(decay, Load0(from + i * stride_)));
        const auto s1 = hn::MulAdd(key, u1, hn::Mul(decay, Load1(from + i * stride_)));
        Store(s0, s1, to + i * stride_);
        y0 = hn::MulAdd(query, s0, y0);
        y1 = hn::MulAdd(query, s1, y1);
        if (kDelta) {
          const auto next_key = hn::Set(d, next[i]);
          r0 = hn::MulAdd(next_key, s0, r0);
          r1 = hn::MulAdd(next_key, s1, r1);
        }
      }
      if (kDelta) {
        const auto q_factor = hn::Set(d, gates_.q[t]);
        y0 = hn::Mul(y0, q_factor);
        y1 = hn::Mul(y1, q_factor);
      }
      const auto skip = hn::Set(d, skip_);
      Store(hn::MulAdd(skip, v0, y0), hn::MulAdd(skip, v1, y1),
            tile_.out + (first + t) * tile_.n_heads * tile_.value_dim + out_);
      from = to;
    }
  }

 private:
  const float* In(size_t row) const { return tile_.in + row * tile_.in_stride; }
  HWY_INLINE auto Load0(const float* at) const {
    namespace hn = hwy::HWY_NAMESPACE;
    const Floats d;
    if constexpr (kWhole) return hn::LoadU(d, at);
    return hn::LoadN(d, at, n0_);
  }
  HWY_INLINE auto Load1(const float* at) const {
    namespace hn = hwy::HWY_NAMESPACE;
    const Floats d;
    if constexpr (kWhole) return hn::LoadU(d, at + hn::Lanes(d));
    return hn::LoadN(d, at + n0_, n1_);
  }
  template <class V>
  HWY_INLINE void Store(V v0, V v1, float* at) const {
    namespace hn = hwy::HWY_NAMESPACE;
    const Floats d;
    if constexpr (kWhole) {
      hn::StoreU(v0, d, at);
      hn::StoreU(v1, d, at + hn::Lanes(d));
    } else {
      hn::StoreN(v0, d, at, n0_);
      hn::StoreN(v1, d, at + n0_, n1_);
    }
  }

  const LinearAttentionTile& tile_;
  const BlockGates& gates_;
  const size_t stride_;
  size_t n0_, n1_;
  size_t q_, k_, v_, out_;  // offsets in a row
  float skip_;
};

// Runs the tokens of a block on one panel.
template <bool kDelta>
void RunPanel(const LinearAttentionTile& tile, const BlockGates& gates, size_t head, size_t panel,
              size_t first, size_t n) {
  const size_t step = 2 * hwy::HWY_NAMESPACE::Lanes(Floats());
  const size_t column = panel * kStateColumns;
  const size_t width = HWY_MIN(size_t{kStateColumns}, tile.value_dim - column);
  const size_t at = (head * tile.value_dim + column) * tile.key_dim;
  float* to = tile.state.to + at;
  const float* from = first == 0 && tile.state.from != nullptr ? tile.state.from + at : to;
  for (size_t c = 0; c < width; c += step) {
    const size_t columns = HWY_MIN(step, width - c);
    if (columns == step) {
      StateColumns<kDelta, true>(tile, gates, head, column + c, columns, width)
          .Run(first, n, from + c, to + c);
    } else {
      StateColumns<kDelta, false>(tile, gates, head, column + c, columns, width)
          .Run(first, n, from + c, to + c);
    }
  }
}

void LinearAttention(const LinearAttentionTile& tile) {
  const size_t panels = (tile.value_dim + kStateColumns - 1) / kStateColumns;
  BlockGates gates = {};
  for (size_t unit = tile.first; unit < tile.last; ++unit) {
    const size_t head = unit / panels, panel = unit % panels;
    if (tile.state.from == nullptr) {
      const size_t column = panel * kStateColumns;
      const size_t n = HWY_MIN(size_t{kStateColumns}, tile.value_dim - column) * tile.key_dim;
      float* to = tile.state.to + (head * tile.value_dim + column) * tile.key_dim;
      for (size_t i = 0; i < n; ++i) to[i] = 0.0f;
    }
    for (size_t first = 0; first < tile.n_rows; first += kBlock) {
      const size_t n = HWY_MIN(kBlock, tile.n_rows - first);
      ComputeGates(tile, static_cast<uint32_t>(head), first, n, &gates);
      if (tile.has_delta_rule) {
        RunPanel<true>(tile, gates, head, panel, first, n);
      } else {
        RunPanel<false>(tile, gates, head, panel, first, n);
      }
    }
  }
}

}  // namespace arn::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace arn::cpu {

HWY_EXPORT(LinearAttention);
LinearAttentionFn ChooseLinearAttention() { return HWY_DYNAMIC_POINTER(LinearAttention); }

}  // namespace arn::cpu
#endif
