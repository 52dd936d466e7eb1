// The products of low-rank changes in int8. A multiplies rows that the matmul has quantised; B
// multiplies what A made, rounded to 8 bits here. A lane is an output, a group of four inputs is
// broadcast. Sums are of integers, so a row gives the same bits whatever is beside it.
#include <cpuinfo.h>

#include <cstring>

#include "kernels/cpu/cpu_features.h"
#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/targets.h"
#include "kernels/cpu/vnni.h"
#include "platform/base/arith.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/simd/low_rank_int8.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace arn::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using LowRankSums = hn::CappedTag<int32_t, kLowRankColumns>;
using LowRankFloats = hn::Rebind<float, LowRankSums>;
using LowRankBytes8 = hn::Repartition<int8_t, LowRankSums>;
using LowRankSum = hn::Vec<LowRankSums>;
using LowRankByteVec = hn::Vec<LowRankBytes8>;
constexpr size_t kSumLanes = HWY_MAX_LANES_D(LowRankSums);
constexpr size_t kSumParts = kLowRankColumns / kSumLanes;
constexpr uint32_t kGroupBytes = 4 * kLowRankColumns;  // four inputs of a panel

// Sums of products of four bytes each. kOffset: added to the bytes of one of the operands, the
// inputs of A and the weights of B, to make them unsigned. kRows: of a tile, whose sums fill the
// registers; then of a smaller one.
struct AnyDot {
  static constexpr int32_t kOffset = 0;
#if HWY_TARGET <= HWY_AVX2 && HWY_ARCH_X86
  static constexpr uint32_t kRows = 3, kFewRows = 3;
#else
  static constexpr uint32_t kRows = 1, kFewRows = 1;  // of old CPUs: small code
#endif
  static HWY_INLINE void Add(LowRankByteVec a, LowRankByteVec b, LowRankSum* sum) {
    *sum = hn::SumOfMulQuadAccumulate(LowRankSums(), a, b, *sum);
  }
};
#if HWY_TARGET == HWY_AVX3
struct VnniDot {
  static constexpr int32_t kOffset = 128;
#ifdef ARN_SMALL_CODE
  static constexpr uint32_t kRows = 4, kFewRows = 4;
#else
  static constexpr uint32_t kRows = 12, kFewRows = 4;
#endif
  static HWY_INLINE void Add(LowRankByteVec a, LowRankByteVec b, LowRankSum* sum) {
    vnni::AddProducts(a.raw, b.raw, &sum->raw);
  }
};
#elif HWY_ARCH_ARM_A64
struct SdotDot {
  static constexpr int32_t kOffset = 0;
  static constexpr uint32_t kRows = 3, kFewRows = 3;
  // Assembly, so that this inlines into code for CPUs without dot products.
  static HWY_INLINE void Add(LowRankByteVec a, LowRankByteVec b, LowRankSum* sum) {
    asm(".arch armv8.2-a+dotprod\n\tsdot %0.4s, %1.16b, %2.16b"
        : "+w"(sum->raw)
        : "w"(a.raw), "w"(b.raw));
  }
};
#endif

HWY_INLINE LowRankByteVec FourBytes(const void* at) {
  int32_t four;
  std::memcpy(&four, at, sizeof four);
  return hn::BitCast(LowRankBytes8(), hn::Set(LowRankSums(), four));
}
HWY_INLINE LowRankByteVec Flip(LowRankByteVec bytes) {
  return hn::Xor(bytes, hn::Set(LowRankBytes8(), static_cast<int8_t>(-128)));
}

// All panels of A times kRows rows.
template <class Dot, uint32_t kRows, bool kFlips>
HWY_INLINE void MultiplyARows(const QuantizedLowRank& args, const uint8_t* x,
                              const QuantizedRow* rows, float* out) {
  const LowRankSums di;
  const LowRankFloats df;
  // A lone row hides the latency of products by summing odd groups apart.
  constexpr uint32_t kSplit = kRows == 1 ? 2 : 1;
  const uint32_t n_pairs = CeilDiv(args.inputs, kLowRankInputs);
  const std::byte* w = args.panels;
  for (uint32_t panel = 0; panel < args.n_panels; ++panel) {
    LowRankSum sums[kRows][kSplit][kSumParts];
    HWY_UNROLL(16)
    for (uint32_t r = 0; r < kRows; ++r) {
      for (uint32_t s = 0; s < kSplit; ++s) {
        for (size_t v = 0; v < kSumParts; ++v) sums[r][s][v] = hn::Zero(di);
      }
    }
    const auto add = [&](const uint8_t* at, uint32_t split) HWY_ATTR {
      HWY_UNROLL(4)
      for (size_t v = 0; v < kSumParts; ++v) {
        const auto weights =
            hn::Load(LowRankBytes8(), reinterpret_cast<const int8_t*>(w) + v * 4 * kSumLanes);
        HWY_UNROLL(16)
        for (uint32_t r = 0; r < kRows; ++r) {
          auto inputs = FourBytes(at + r * args.row_stride);
          if (kFlips) inputs = Flip(inputs);
          Dot::Add(inputs, weights, &sums[r][split][v]);
        }
      }
      w += kGroupBytes;
    };
    const uint8_t* at = x;
    for (uint32_t i = 0; i < n_pairs; ++i, at += args.pair_stride) {
      add(at, 0);
      add(at + args.second, kSplit - 1);
    }
    const size_t column = size_t{panel} * kLowRankColumns;
    HWY_UNROLL(16)
    for (uint32_t r = 0; r < kRows; ++r) {
      const QuantizedRow& row = rows[r * args.row_step];
      const auto zero_point = hn::Set(di, row.zero_point + Dot::kOffset);
      const auto factor = hn::Set(df, row.scale * args.factor);
      HWY_UNROLL(4)
      for (size_t v = 0; v < kSumParts; ++v) {
        const size_t first = column + v * kSumLanes;
        LowRankSum sum = sums[r][0][v];
        if (kSplit == 2) sum = hn::Add(sum, sums[r][kSplit - 1][v]);
        sum = hn::Sub(sum, hn::Mul(hn::Load(di, args.sums + first), zero_point));
        const auto scaled = hn::Mul(factor, hn::Load(df, args.scales + first));
        float* to = out + r * args.out_stride + first;
        auto y = hn::Mul(hn::ConvertTo(df, sum), scaled);
        if (args.accumulates) y = hn::Add(hn::LoadU(df, to), y);
        hn::StoreU(y, df, to);
      }
    }
  }
}

template <class Dot, uint32_t kRows, bool kFlips>
HWY_INLINE void MultiplyATiles(const QuantizedLowRank& args, uint32_t* row) {
  for (; *row + kRows <= args.n_rows; *row += kRows) {
    MultiplyARows<Dot, kRows, kFlips>(args, args.x + *row * args.row_stride,
                                      args.rows + *row * args.row_step,
                                      args.out + *row * args.out_stride);
  }
}

template <class Dot, bool kFlips>
void MultiplyA(const QuantizedLowRank& args) {
  uint32_t row = 0;
  MultiplyATiles<Dot, Dot::kRows, kFlips>(args, &row);
  if (Dot::kFewRows < Dot::kRows) MultiplyATiles<Dot, Dot::kFewRows, kFlips>(args, &row);
  if (Dot::kFewRows > 1) MultiplyATiles<Dot, 1, kFlips>(args, &row);
}

template <class Dot>
void LowRankInt8A(const QuantizedLowRank& args) {
  // Only kernels for x86 offset their rows (simd/tile.h).
  const bool flips = HWY_ARCH_X86 && args.is_offset != (Dot::kOffset != 0);
  if (flips) return MultiplyA<Dot, HWY_ARCH_X86 != 0>(args);
  MultiplyA<Dot, false>(args);
}

// n ranks of a row as integers, and zeros up to a multiple of kLowRankInputs.
struct RoundedRanks {
  HWY_ALIGN int8_t values[kRankChunk];
  float scale;
  int32_t sum;

  HWY_INLINE void Take(const float* y, uint32_t n) {
    const LowRankSums di;
    const LowRankFloats d;
    const hn::Rebind<int8_t, LowRankSums> di8;
    auto largest = hn::Zero(d);
    for (uint32_t i = 0; i < n; i += kSumLanes) {
      largest = hn::Max(largest, hn::Abs(hn::LoadN(d, y + i, n - i)));
    }
    const float most = hn::ReduceMax(d, largest);
    const auto factor = hn::Set(d, most > 0.0f ? 127.0f / most : 0.0f);
    scale = most / 127.0f;
    auto total = hn::Zero(di);
    for (uint32_t i = 0; i < AlignUp(n, kLowRankInputs); i += kSumLanes) {
      const auto part = i < n ? hn::LoadN(d, y + i, n - i) : hn::Zero(d);
      const auto rounded = hn::NearestInt(hn::Mul(part, factor));
      total = hn::Add(total, rounded);
      hn::StoreU(hn::DemoteTo(di8, rounded), di8, values + i);
    }
    sum = hn::ReduceSum(di, total);
  }
};

// A block's B times n of the ranks, from `first` on, of kRows rows.
template <class Dot, uint32_t kRows>
HWY_INLINE void MultiplyBChunk(const LowRankArgs& args, const float* y, uint32_t first, uint32_t n,
                               float* out) {
  const LowRankSums di;
  const LowRankFloats df;
  RoundedRanks ranks[kRows];
  for (uint32_t r = 0; r < kRows; ++r) ranks[r].Take(y + r * args.x_stride + first, n);
  const uint64_t panel_bytes = LowRankPanelBytes(DType::kInt8, args.inputs);
  const std::byte* panel = args.panels + size_t{first} * kLowRankColumns;
  for (uint32_t column = 0; column < args.n; column += kLowRankColumns, panel += panel_bytes) {
    LowRankSum sums[kRows][kSumParts];
    HWY_UNROLL(16)
    for (uint32_t r = 0; r < kRows; ++r) {
      for (size_t v = 0; v < kSumParts; ++v) {
        sums[r][v] = hn::Set(di, -Dot::kOffset * ranks[r].sum);
      }
    }
    const auto* w = reinterpret_cast<const int8_t*>(panel);
    for (uint32_t k = 0; k < n; k += 4, w += kGroupBytes) {
      HWY_UNROLL(4)
      for (size_t v = 0; v < kSumParts; ++v) {
        auto weights = hn::Load(LowRankBytes8(), w + v * 4 * kSumLanes);
        if (Dot::kOffset != 0) weights = Flip(weights);
        HWY_UNROLL(16)
        for (uint32_t r = 0; r < kRows; ++r) {
          Dot::Add(weights, FourBytes(ranks[r].values + k), &sums[r][v]);
        }
      }
    }
    const float scale = args.scales[column / kLowRankColumns];
    HWY_UNROLL(16)
    for (uint32_t r = 0; r < kRows; ++r) {
      const auto factor = hn::Set(df, scale * ranks[r].scale);
      HWY_UNROLL(4)
      for (size_t v = 0; v < kSumParts; ++v) {
        const size_t at = column + v * kSumLanes;
        if (at >= args.n) break;
        float* to = out + r * args.out_stride + at;
        const auto product = hn::ConvertTo(df, sums[r][v]);
        if (HWY_LIKELY(at + kSumLanes <= args.n)) {
          hn::StoreU(hn::MulAdd(product, factor, hn::LoadU(df, to)), df, to);
        } else {
          const size_t left = args.n - at;
          hn::StoreN(hn::MulAdd(product, factor, hn::LoadN(df, to, left)), df, to, left);
        }
      }
    }
  }
}

template <class Dot, uint32_t kRows>
HWY_INLINE void MultiplyBTiles(const LowRankArgs& args, uint32_t* row) {
  for (; *row + kRows <= args.n_rows; *row += kRows) {
    const float* y = args.x + *row * args.x_stride;
    float* out = args.out + *row * args.out_stride;
    for (uint32_t first = 0; first < args.inputs; first += kRankChunk) {
      MultiplyBChunk<Dot, kRows>(args, y, first, HWY_MIN(kRankChunk, args.inputs - first), out);
    }
  }
}

template <class Dot>
void LowRankInt8B(const LowRankArgs& args) {
  uint32_t row = 0;
  MultiplyBTiles<Dot, Dot::kRows>(args, &row);
  if (Dot::kFewRows < Dot::kRows) MultiplyBTiles<Dot, Dot::kFewRows>(args, &row);
  if (Dot::kFewRows > 1) MultiplyBTiles<Dot, 1>(args, &row);
}

void AnyLowRankInt8A(const QuantizedLowRank& args) { LowRankInt8A<AnyDot>(args); }
void AnyLowRankInt8B(const LowRankArgs& args) { LowRankInt8B<AnyDot>(args); }
#if HWY_TARGET == HWY_AVX3
void DotLowRankInt8A(const QuantizedLowRank& args) { LowRankInt8A<VnniDot>(args); }
void DotLowRankInt8B(const LowRankArgs& args) { LowRankInt8B<VnniDot>(args); }
#elif HWY_ARCH_ARM_A64
void DotLowRankInt8A(const QuantizedLowRank& args) { LowRankInt8A<SdotDot>(args); }
void DotLowRankInt8B(const LowRankArgs& args) { LowRankInt8B<SdotDot>(args); }
#endif

}  // namespace arn::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace arn::cpu {

HWY_EXPORT(AnyLowRankInt8A);
HWY_EXPORT(AnyLowRankInt8B);

LowRankInt8Kernels ChooseLowRankInt8() {
  // As for matmuls (integer_tile.cc), instructions beyond those of a target are no further target.
#if HWY_TARGETS & HWY_AVX3
  if ((hwy::SupportedTargets() & HWY_AVX3_DL) != 0) {
    return {N_AVX3::DotLowRankInt8A, N_AVX3::DotLowRankInt8B};
  }
#elif HWY_ARCH_ARM_A64
  if (KnowCpu() == Status::kOk && cpuinfo_has_arm_neon_dot()) {
    return {HWY_STATIC_DISPATCH(DotLowRankInt8A), HWY_STATIC_DISPATCH(DotLowRankInt8B)};
  }
#endif
  return {HWY_DYNAMIC_POINTER(AnyLowRankInt8A), HWY_DYNAMIC_POINTER(AnyLowRankInt8B)};
}

}  // namespace arn::cpu
#endif
