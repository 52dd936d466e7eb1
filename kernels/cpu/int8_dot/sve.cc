// Int8Dot with SVE's byte matrix multiply, for 256-bit vectors (Neoverse V1). CPUs with 128-bit
// vectors (phones, Neoverse N2 and V2) are as fast with NEON.
#include "kernels/cpu/cpu_features.h"
#include "kernels/cpu/int8_dot/mmla.h"

// No Android CPU has 256-bit vectors, and Clang before 18 has no SVE target functions.
#if defined(ARN_HAS_MMLA) && !defined(__ANDROID__) && (!defined(__clang__) || __clang_major__ >= 18)
#include <arm_sve.h>
#include <cpuinfo.h>

#define ARN_SVE __attribute__((target("arch=armv8.2-a+sve+i8mm")))
#define ARN_SVE_INLINE ARN_SVE __attribute__((always_inline)) inline

namespace arn::cpu {
namespace {
using namespace mmla;

constexpr uint32_t kVectorBytes = 32;
constexpr uint32_t kLanes = kVectorBytes / 4;

// A vector holds the sums of two pairs: high, high, low, low each.
ARN_SVE_INLINE svint32_t Highs(svint32_t a, svint32_t b) {
  return svreinterpret_s32_s64(svuzp1_s64(svreinterpret_s64_s32(a), svreinterpret_s64_s32(b)));
}
ARN_SVE_INLINE svint32_t Lows(svint32_t a, svint32_t b) {
  return svreinterpret_s32_s64(svuzp2_s64(svreinterpret_s64_s32(a), svreinterpret_s64_s32(b)));
}

struct StoreScores {
  float* out;

  // Stores the scores of query q for kLanes tokens from `first` on.
  ARN_SVE_INLINE void operator()(uint32_t q, uint32_t first, svint32_t high, svint32_t low) const {
    const svbool_t all = svptrue_b32();
    const svfloat32_t sum =
        svmla_n_f32_x(all, svcvt_f32_s32_x(all, low), svcvt_f32_s32_x(all, high), 256.0f);
    svst1_f32(all, out + size_t{q} * kDotTokens + first, sum);
  }
};

struct AddToSums {
  const float* factors;
  size_t stride;
  float* out;

  ARN_SVE_INLINE void operator()(uint32_t q, uint32_t first, svint32_t high, svint32_t low) const {
    const svbool_t all = svptrue_b32();
    float* to = out + q * stride + first;
    const svfloat32_t sum =
        svcvt_f32_s32_x(all, svadd_s32_x(all, svlsl_n_s32_x(all, high, 8), low));
    svst1_f32(all, to, svmla_n_f32_x(all, svld1_f32(all, to), sum, factors[q]));
  }
};

// Individual variables: SVE vectors cannot be array elements.
template <uint32_t kQueries, typename Finish>
ARN_SVE_INLINE void Sum(const Planes& planes, const Steps& steps, const Finish& finish) {
  const svbool_t all = svptrue_b8();
  const svint32_t zero = svdup_n_s32(0);
  svint32_t a0 = zero, a1 = zero, a2 = zero, a3 = zero;
  svint32_t b0 = zero, b1 = zero, b2 = zero, b3 = zero;
  const auto* step = reinterpret_cast<const int8_t*>(steps.at);
  for (uint32_t i = 0; i < steps.n; ++i, step += steps.stride) {
    const svint8_t p0 = svld1_s8(all, step), p1 = svld1_s8(all, step + kVectorBytes);
    const svint8_t p2 = svld1_s8(all, step + 2 * kVectorBytes);
    const svint8_t p3 = svld1_s8(all, step + 3 * kVectorBytes);
    const svint8_t a = svld1rq_s8(all, planes.bytes[0] + i * kPairBytes);
    a0 = svmmla_s32(a0, a, p0);
    a1 = svmmla_s32(a1, a, p1);
    a2 = svmmla_s32(a2, a, p2);
    a3 = svmmla_s32(a3, a, p3);
    if constexpr (kQueries == kSharing) {
      const svint8_t b = svld1rq_s8(all, planes.bytes[1] + i * kPairBytes);
      b0 = svmmla_s32(b0, b, p0);
      b1 = svmmla_s32(b1, b, p1);
      b2 = svmmla_s32(b2, b, p2);
      b3 = svmmla_s32(b3, b, p3);
    }
  }
  finish(0, 0, Highs(a0, a1), Lows(a0, a1));
  finish(0, kLanes, Highs(a2, a3), Lows(a2, a3));
  if constexpr (kQueries == kSharing) {
    finish(1, 0, Highs(b0, b1), Lows(b0, b1));
    finish(1, kLanes, Highs(b2, b3), Lows(b2, b3));
  }
}

struct Sve {
  ARN_SVE static void Scores(uint32_t n, const Planes& planes, const Steps& steps, float* out) {
    const StoreScores finish = {out};
    return n == kSharing ? Sum<kSharing>(planes, steps, finish) : Sum<1>(planes, steps, finish);
  }
  ARN_SVE static void AddValues(uint32_t n, const Planes& planes, const Steps& steps,
                                const float* factors, size_t stride, float* out) {
    const AddToSums finish = {factors, stride, out};
    return n == kSharing ? Sum<kSharing>(planes, steps, finish) : Sum<1>(planes, steps, finish);
  }
};

constexpr Int8Dot kSve = Table<Sve>();

ARN_SVE bool HasVectors() { return svcntb() == kVectorBytes; }

}  // namespace

const Int8Dot* Int8DotSve() {
  const bool has_both = KnowCpu() == Status::kOk && cpuinfo_has_arm_sve() && cpuinfo_has_arm_i8mm();
  return has_both && HasVectors() ? &kSve : nullptr;
}

}  // namespace arn::cpu

#else
namespace arn::cpu {
const Int8Dot* Int8DotSve() { return nullptr; }
}  // namespace arn::cpu
#endif
