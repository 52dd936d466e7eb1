// Attention tiles with f32 keys and values: dot products with the queries of a tile.
#if defined(ARN_KERNELS_CPU_SIMD_ATTENTION_FLOAT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ARN_KERNELS_CPU_SIMD_ATTENTION_FLOAT_INL_H_
#undef ARN_KERNELS_CPU_SIMD_ATTENTION_FLOAT_INL_H_
#else
#define ARN_KERNELS_CPU_SIMD_ATTENTION_FLOAT_INL_H_
#endif

#include <hwy/highway.h>

#include "kernels/cpu/simd/attention_scratch.h"
#include "kernels/cpu/simd/kv_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace arn::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

static_assert(kLanes <= kMaxLanes && kFloatTokens % kLanes == 0);

// Returns a vector whose lane j is the sum of all lanes of v[j].
template <size_t kCount>
HWY_INLINE V SumEach(V (&v)[kCount]) {
  const D d;
  if constexpr (kCount == 1) {
    return v[0];
  } else {
    V half[kCount / 2];
    for (size_t i = 0; i < kCount / 2; ++i) {
      half[i] = hn::Add(hn::ConcatEven(d, v[2 * i + 1], v[2 * i]),
                        hn::ConcatOdd(d, v[2 * i + 1], v[2 * i]));
    }
    return SumEach(half);
  }
}

// scores[t] = q . k[t] for t < n, rounded up to whole vectors of tokens.
HWY_INLINE void Dot(const float* q, const Rows& k, size_t n, size_t dim, float* scores) {
  const D d;
  for (size_t t = 0; t < n; t += kLanes) {
    V sums[kLanes];
    for (V& s : sums) s = hn::Zero(d);
    const float* row = k.data + t * k.stride;
    if (t + kLanes <= n) {
      for (size_t i = 0; i < dim; i += kLanes) {
        const V a = hn::LoadU(d, q + i);
        for (size_t j = 0; j < kLanes; ++j) {
          sums[j] = hn::MulAdd(a, hn::LoadU(d, row + j * k.stride + i), sums[j]);
        }
      }
    } else {
      for (size_t j = 0; t + j < n; ++j) {
        for (size_t i = 0; i < dim; i += kLanes) {
          sums[j] = hn::MulAdd(hn::LoadU(d, q + i), hn::LoadU(d, row + j * k.stride + i), sums[j]);
        }
      }
    }
    hn::StoreU(SumEach(sums), d, scores + t);
  }
}

// sums[q, i] += weights[q, t] v[t, i] for kQueries queries and kVectors vectors of i.
template <size_t kQueries, size_t kVectors>
HWY_INLINE void AddBlock(const float* weights, const Rows& v, size_t n, size_t column,
                         size_t stride, float* sums) {
  const D d;
  V acc[kQueries][kVectors];
  for (size_t q = 0; q < kQueries; ++q) {
    for (size_t c = 0; c < kVectors; ++c) {
      acc[q][c] = hn::LoadU(d, sums + q * stride + column + c * kLanes);
    }
  }
  for (size_t t = 0; t < n; ++t) {
    V values[kVectors];
    for (size_t c = 0; c < kVectors; ++c) {
      values[c] = hn::LoadU(d, v.data + t * v.stride + column + c * kLanes);
    }
    for (size_t q = 0; q < kQueries; ++q) {
      const V p = hn::Set(d, weights[q * kDotTokens + t]);
      for (size_t c = 0; c < kVectors; ++c) acc[q][c] = hn::MulAdd(p, values[c], acc[q][c]);
    }
  }
  for (size_t q = 0; q < kQueries; ++q) {
    for (size_t c = 0; c < kVectors; ++c) {
      hn::StoreU(acc[q][c], d, sums + q * stride + column + c * kLanes);
    }
  }
}

template <size_t kQueries>
void AddWeighted(const float* weights, const Rows& v, size_t n, size_t dim, size_t stride,
                 float* sums) {
  size_t i = 0;
  for (; i + 4 * kLanes <= dim; i += 4 * kLanes) {
    AddBlock<kQueries, 4>(weights, v, n, i, stride, sums);
  }
  for (; i < dim; i += kLanes) {
    AddBlock<kQueries, 1>(weights, v, n, i, stride, sums);
  }
}

// sums[q, i] += weights[q, t] v[t, i] for t < n.
HWY_INLINE void AddValueRows(const float* weights, size_t queries, const Rows& v, size_t n,
                             size_t dim, size_t stride, float* sums) {
  constexpr size_t kBlock = HWY_TARGET == HWY_AVX3 || HWY_ARCH_ARM_A64 ? 4 : 2;
  size_t q = 0;
  for (; q + kBlock <= queries; q += kBlock) {
    AddWeighted<kBlock>(weights + q * kDotTokens, v, n, dim, stride, sums + q * stride);
  }
  for (; q < queries; ++q) {
    AddWeighted<1>(weights + q * kDotTokens, v, n, dim, stride, sums + q * stride);
  }
}

}  // namespace arn::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
