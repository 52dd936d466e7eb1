// Int8Dot with NEON's products of matrices of bytes (smmla, ARMv8.6 and many CPUs before it), and
// the order of tiles that SVE's use, too.
#include "kernels/cpu/int8_dot_mmla.h"

#if defined(ARN_HAS_MMLA)
#include <cpuinfo.h>

#include "kernels/cpu/int8_dot_neon.h"

#define ARN_I8MM __attribute__((target("arch=armv8.2-a+i8mm")))
#define ARN_I8MM_INLINE ARN_I8MM __attribute__((always_inline)) inline

namespace arn::cpu {
namespace mmla {
namespace {

constexpr uint32_t kLanes = 4;  // i32 or f32 of a vector

int8x16_t FirstHalves(int8x16_t a, int8x16_t b) {
  return vreinterpretq_s8_s64(vzip1q_s64(vreinterpretq_s64_s8(a), vreinterpretq_s64_s8(b)));
}
int8x16_t SecondHalves(int8x16_t a, int8x16_t b) {
  return vreinterpretq_s8_s64(vzip2q_s64(vreinterpretq_s64_s8(a), vreinterpretq_s64_s8(b)));
}

// Channels [first, first + 8) of eight tokens become four pairs of channels.
void PackEight(const int8_t* rows, uint32_t first, uint32_t dim, uint8_t* out) {
  int16x8_t two[4];  // of each channel two tokens
  for (uint32_t i = 0; i < 4; ++i) {
    const int8_t* row = rows + size_t{2 * i} * dim;
    two[i] =
        vreinterpretq_s16_s8(vzip1q_s8(LoadRow(row, first, dim), LoadRow(row + dim, first, dim)));
  }
  int32x4_t four[2][2];  // of four channels each, four tokens
  for (uint32_t i = 0; i < 2; ++i) {
    four[i][0] = vreinterpretq_s32_s16(vzip1q_s16(two[2 * i], two[2 * i + 1]));
    four[i][1] = vreinterpretq_s32_s16(vzip2q_s16(two[2 * i], two[2 * i + 1]));
  }
  for (uint32_t i = 0; i < 2; ++i, out += 2 * kPairBytes) {
    vst1q_u8(out, vreinterpretq_u8_s32(vzip1q_s32(four[0][i], four[1][i])));
    vst1q_u8(out + kPairBytes, vreinterpretq_u8_s32(vzip2q_s32(four[0][i], four[1][i])));
  }
}

template <uint32_t kQueries>
struct Sums {
  int32x4_t of[kQueries][kPairs] = {};

  ARN_I8MM_INLINE void Add(const Planes& planes, const Steps& steps) {
    const uint8_t* step = steps.at;
    for (uint32_t i = 0; i < steps.n; ++i, step += steps.stride) {
      int8x16_t x[kQueries];
      for (uint32_t q = 0; q < kQueries; ++q) x[q] = vld1q_s8(planes.bytes[q] + i * kPairBytes);
      for (uint32_t p = 0; p < kPairs; ++p) {
        const int8x16_t pair = vreinterpretq_s8_u8(vld1q_u8(step + p * kPairBytes));
        for (uint32_t q = 0; q < kQueries; ++q) of[q][p] = vmmlaq_s32(of[q][p], x[q], pair);
      }
    }
  }
  // Of four tokens or channels: the sums with high bytes, and those with low ones.
  ARN_I8MM_INLINE int32x4_t High(uint32_t q, uint32_t four) const {
    return vreinterpretq_s32_s64(vzip1q_s64(vreinterpretq_s64_s32(of[q][2 * four]),
                                            vreinterpretq_s64_s32(of[q][2 * four + 1])));
  }
  ARN_I8MM_INLINE int32x4_t Low(uint32_t q, uint32_t four) const {
    return vreinterpretq_s32_s64(vzip2q_s64(vreinterpretq_s64_s32(of[q][2 * four]),
                                            vreinterpretq_s64_s32(of[q][2 * four + 1])));
  }
};

template <uint32_t kQueries>
ARN_I8MM_INLINE void ScoreBlock(const Planes& planes, const Steps& steps, float* out) {
  Sums<kQueries> sums;
  sums.Add(planes, steps);
  for (uint32_t q = 0; q < kQueries; ++q) {
    for (uint32_t i = 0; i < kDotBlock / kLanes; ++i) {
      const float32x4_t high = vcvtq_f32_s32(sums.High(q, i)), low = vcvtq_f32_s32(sums.Low(q, i));
      vst1q_f32(out + size_t{q} * kDotTokens + i * kLanes, vfmaq_n_f32(low, high, 256.0f));
    }
  }
}

template <uint32_t kQueries>
ARN_I8MM_INLINE void AddBlock(const Planes& planes, const Steps& steps, const float* factors,
                              size_t stride, float* out) {
  Sums<kQueries> sums;
  sums.Add(planes, steps);
  for (uint32_t q = 0; q < kQueries; ++q) {
    for (uint32_t i = 0; i < kDotBlock / kLanes; ++i) {
      float* to = out + q * stride + i * kLanes;
      const int32x4_t sum = vaddq_s32(vshlq_n_s32(sums.High(q, i), 8), sums.Low(q, i));
      vst1q_f32(to, vfmaq_n_f32(vld1q_f32(to), vcvtq_f32_s32(sum), factors[q]));
    }
  }
}

struct Neon {
  ARN_I8MM static void Scores(uint32_t n, const Planes& planes, const Steps& steps, float* out) {
    return n == kSharing ? ScoreBlock<kSharing>(planes, steps, out)
                         : ScoreBlock<1>(planes, steps, out);
  }
  ARN_I8MM static void AddValues(uint32_t n, const Planes& planes, const Steps& steps,
                                 const float* factors, size_t stride, float* out) {
    return n == kSharing ? AddBlock<kSharing>(planes, steps, factors, stride, out)
                         : AddBlock<1>(planes, steps, factors, stride, out);
  }
};

constexpr Int8Dot kI8mm = Table<Neon>();

}  // namespace

void PackKeys(const int8_t* const* strips, uint32_t n_blocks, uint32_t dim, uint8_t* out) {
  for (uint32_t block = 0; block < n_blocks; ++block) {
    for (uint32_t first = 0; first < dim; first += kPairBytes, out += kStepBytes) {
      const bool has_second = dim > first + kEight;
      for (uint32_t p = 0; p < kPairs; ++p) {
        const uint32_t token = block * kDotBlock + 2 * p;
        const int8x16_t a = LoadRow(DotRow(strips, token, dim), first, dim);
        const int8x16_t b = LoadRow(DotRow(strips, token + 1, dim), first, dim);
        uint8_t* pair = out + p * kPairBytes;
        vst1q_u8(pair, vreinterpretq_u8_s8(FirstHalves(a, b)));
        if (has_second) vst1q_u8(pair + kStepBytes, vreinterpretq_u8_s8(SecondHalves(a, b)));
      }
      if (has_second) out += kStepBytes;
    }
  }
}

void PackValues(const int8_t* const* strips, uint32_t n_quads, uint32_t dim, uint8_t* out) {
  static_assert(kKvStrip == kEight, "a strip's tokens are an eight");
  const uint32_t width = DotValueWidth(dim);
  for (uint32_t strip = 0; strip < Eights(4 * n_quads); ++strip) {
    for (uint32_t first = 0; first < width; first += kEight, out += kEight * kEight) {
      PackEight(strips[strip], first, dim, out);
    }
  }
}

}  // namespace mmla

const Int8Dot* Int8DotI8mm() {
  return cpuinfo_initialize() && cpuinfo_has_arm_i8mm() ? &mmla::kI8mm : nullptr;
}

}  // namespace arn::cpu

#else
namespace arn::cpu {
const Int8Dot* Int8DotI8mm() { return nullptr; }
}  // namespace arn::cpu
#endif
