// Int8Dot with NEON's byte matrix multiply (smmla, ARMv8.6 and many earlier CPUs), and the packing
// of tiles, which the SVE version shares.
#include "kernels/cpu/cpu_features.h"
#include "kernels/cpu/int8_dot/mmla.h"

#if defined(ARN_HAS_MMLA)
#include <cpuinfo.h>

namespace arn::cpu {
namespace mmla {
namespace {

constexpr uint32_t kLanes = 4;  // i32 or f32 lanes per vector

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
};

template <uint32_t kQueries>
ARN_I8MM_INLINE void ScoreBlock(const Planes& planes, const Steps& steps, float* out) {
  Sums<kQueries> sums;
  sums.Add(planes, steps);
  for (uint32_t q = 0; q < kQueries; ++q, out += kDotTokens) {
    for (uint32_t p = 0; p < kPairs; p += 2) {
      StorePairs(sums.of[q][p], sums.of[q][p + 1], out + p / 2 * kLanes);
    }
  }
}

template <uint32_t kQueries>
ARN_I8MM_INLINE void AddBlock(const Planes& planes, const Steps& steps, const float* factors,
                              size_t stride, float* out) {
  Sums<kQueries> sums;
  sums.Add(planes, steps);
  for (uint32_t q = 0; q < kQueries; ++q, out += stride) {
    for (uint32_t p = 0; p < kPairs; p += 2) {
      AddPairs(sums.of[q][p], sums.of[q][p + 1], factors[q], out + p / 2 * kLanes);
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

// Packs channels [first, first + 16) of a block (fewer at the end of a row). Returns the end of the
// output.
template <bool kWhole>
uint8_t* PackChannels(const int8_t* const* strips, uint32_t first, uint32_t dim, uint8_t* out) {
  const bool has_second = kWhole || dim > first + kEight;
  for (uint32_t p = 0; p < kPairs; ++p) {
    const int8x16_t a = LoadRow<kWhole>(DotRow(strips, 2 * p, dim), first, dim);
    const int8x16_t b = LoadRow<kWhole>(DotRow(strips, 2 * p + 1, dim), first, dim);
    uint8_t* pair = out + p * kPairBytes;
    vst1q_u8(pair, vreinterpretq_u8_s8(FirstHalves(a, b)));
    if (has_second) vst1q_u8(pair + kStepBytes, vreinterpretq_u8_s8(SecondHalves(a, b)));
  }
  return out + (has_second ? 2 : 1) * kStepBytes;
}

template <bool kWhole>
void PackEight(const int8_t* strip, uint32_t first, uint32_t dim, uint8_t* out) {
  int8x16_t pairs[4];
  PairChannels<kWhole>(strip, first, dim, pairs);
  for (uint32_t i = 0; i < 4; ++i) vst1q_u8(out + i * kPairBytes, vreinterpretq_u8_s8(pairs[i]));
}

}  // namespace

void PackKeys(const int8_t* const* strips, uint32_t n_blocks, uint32_t dim, uint8_t* out) {
  for (uint32_t block = 0; block < n_blocks; ++block, strips += kDotBlock / kKvStrip) {
    uint32_t first = 0;
    for (; first + kPairBytes <= dim; first += kPairBytes) {
      out = PackChannels<true>(strips, first, dim, out);
    }
    if (first < dim) out = PackChannels<false>(strips, first, dim, out);
  }
}

void PackValues(const int8_t* const* strips, uint32_t n_quads, uint32_t dim, uint8_t* out) {
  static_assert(kKvStrip == kEight, "a strip's tokens are an eight");
  const uint32_t width = DotValueWidth(dim);
  for (uint32_t i = 0; i < Eights(4 * n_quads); ++i) {
    for (uint32_t first = 0; first < width; first += kEight, out += 4 * kPairBytes) {
      if (first + kEight <= dim) {
        PackEight<true>(strips[i], first, dim, out);
      } else {
        PackEight<false>(strips[i], first, dim, out);
      }
    }
  }
}

}  // namespace mmla

const Int8Dot* Int8DotI8mm() {
  return KnowCpu() == Status::kOk && cpuinfo_has_arm_i8mm() ? &mmla::kI8mm : nullptr;
}

}  // namespace arn::cpu

#else
namespace arn::cpu {
const Int8Dot* Int8DotI8mm() { return nullptr; }
}  // namespace arn::cpu
#endif
