// The products of low-rank changes in int8 and int4. A multiplies rows that the matmul has
// quantised; B multiplies what A made, rounded to 8 bits here. A lane is an output, a group of four
// inputs is broadcast. Sums are of integers, so a row gives the same bits whatever is beside it.
#include <cstring>

#include "kernels/cpu/cpu_features.h"
#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/targets.h"
#include "kernels/cpu/vnni.h"
#include "platform/base/arith.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/simd/low_rank_integer.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "kernels/cpu/simd/low_rank_pairs-inl.h"

HWY_BEFORE_NAMESPACE();
namespace arn::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using LowRankFloats = hn::Rebind<float, LowRankSums>;
using LowRankSum = hn::Vec<LowRankSums>;

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
  // A lone row hides the latency of products by summing groups apart: four vectors or more.
  constexpr uint32_t kSplit = kRows > 1 ? 1 : kSumParts > 1 ? 2 : 4;
  const uint32_t n_pairs = CeilDiv(args.inputs, kLowRankInputs);
  const LowRankPairs pairs(args.dtype);
  const std::byte* w = args.panels;
  const std::byte* ahead = args.ahead == nullptr ? w : args.ahead;
  for (uint32_t panel = 0; panel < args.n_panels; ++panel) {
    LowRankSum sums[kRows][kSplit][kSumParts];
    HWY_UNROLL(16)
    for (uint32_t r = 0; r < kRows; ++r) {
      for (uint32_t s = 0; s < kSplit; ++s) {
        for (size_t v = 0; v < kSumParts; ++v) sums[r][s][v] = hn::Zero(di);
      }
    }
    const auto add = [&](const uint8_t* at, LowRankByteVec weights, size_t v, uint32_t s) HWY_ATTR {
      HWY_UNROLL(16)
      for (uint32_t r = 0; r < kRows; ++r) {
        auto inputs = FourBytes(at + r * args.row_stride);
        if (kFlips) inputs = Flip(inputs);
        Dot::Add(inputs, weights, &sums[r][s][v]);
      }
    };
    const uint8_t* at = x;
    const auto add_pair = [&](uint32_t first, uint32_t second) HWY_ATTR {
      if constexpr (kRows == 1) {
        __builtin_prefetch(ahead + (w - args.panels), 0, 2);
        __builtin_prefetch(ahead + (w - args.panels) + pairs.second, 0, 2);
      }
      HWY_UNROLL(4)
      for (size_t v = 0; v < kSumParts; ++v) {
        add(at, pairs.First(w, v), v, first);
        add(at + args.second, pairs.Second(w, v), v, second);
      }
      w += pairs.bytes;
      at += args.pair_stride;
    };
    uint32_t i = 0;
    if constexpr (kSplit == 4) {
      for (; i + 2 <= n_pairs; i += 2) {
        add_pair(0, 1);
        add_pair(2, kSplit - 1);
      }
    }
    for (; i < n_pairs; ++i) add_pair(0, kSplit - 1);
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
        for (uint32_t s = 1; s < kSplit; ++s) sum = hn::Add(sum, sums[r][s][v]);
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
void LowRankIntegerA(const QuantizedLowRank& args) {
  // Only kernels for x86 offset their rows (simd/tile.h).
  const bool flips = HWY_ARCH_X86 && args.is_offset != (Dot::kOffset != 0);
  if (flips) return MultiplyA<Dot, HWY_ARCH_X86 != 0>(args);
  MultiplyA<Dot, false>(args);
}

// Rounds n ranks of a row. out: may be y if n is 8 or more, as no vector is written over floats
// that are still to be read, nor behind the last.
HWY_NOINLINE void RoundChunk(const float* y, uint32_t n, RoundedRanks* out) {
  const LowRankSums di;
  const LowRankFloats d;
  const hn::Rebind<int8_t, LowRankSums> di8;
  auto largest = hn::Zero(d);
  for (uint32_t i = 0; i < n; i += kSumLanes) {
    largest = hn::Max(largest, hn::Abs(hn::LoadN(d, y + i, n - i)));
  }
  const float most = hn::ReduceMax(d, largest);
  const auto factor = hn::Set(d, most > 0.0f ? 127.0f / most : 0.0f);
  auto total = hn::Zero(di);
  for (uint32_t i = 0; i < AlignUp(n, kLowRankInputs); i += kSumLanes) {
    const auto part = i < n ? hn::LoadN(d, y + i, n - i) : hn::Zero(d);
    const auto rounded = hn::NearestInt(hn::Mul(part, factor));
    total = hn::Add(total, rounded);
    hn::StoreU(hn::DemoteTo(di8, rounded), di8, out->values + i);
  }
  out->scale = most / 127.0f;
  out->offset = -128 * hn::ReduceSum(di, total);
}

void RoundLowRank(const LowRankArgs& args, std::byte* ranks, size_t stride) {
  for (uint32_t row = 0; row < args.n_rows; ++row, ranks += stride) {
    const float* y = args.x + row * args.x_stride;
    auto* out = reinterpret_cast<RoundedRanks*>(ranks);
    for (uint32_t first = 0; first < args.inputs; first += kRankChunk, ++out) {
      RoundChunk(y + first, HWY_MIN(kRankChunk, args.inputs - first), out);
    }
  }
}

// Panels of a B from `column` on, which are whole if there are several, times n ranks of each of
// kRows rows.
template <class Dot, uint32_t kRows, uint32_t kPanels>
HWY_INLINE void MultiplyBPanels(const LowRankArgs& args, const std::byte* panels,
                                uint64_t panel_bytes, const RankRows& ranks, uint32_t n,
                                uint32_t column, float* out) {
  const LowRankSums di;
  const LowRankFloats df;
  LowRankSum sums[kPanels][kRows][kSumParts];
  HWY_UNROLL(16)
  for (uint32_t r = 0; r < kRows; ++r) {
    for (uint32_t p = 0; p < kPanels; ++p) {
      for (size_t v = 0; v < kSumParts; ++v) {
        sums[p][r][v] = hn::Set(di, Dot::kOffset == 0 ? 0 : ranks.At(r).offset);
      }
    }
  }
  const auto add = [&](uint32_t k, LowRankByteVec weights, uint32_t p, size_t v) HWY_ATTR {
    if (Dot::kOffset != 0) weights = Flip(weights);
    HWY_UNROLL(16)
    for (uint32_t r = 0; r < kRows; ++r) {
      Dot::Add(weights, FourBytes(ranks.At(r).values + k), &sums[p][r][v]);
    }
  };
  const LowRankPairs pairs(args.dtype);
  const std::byte* w = panels;
  for (uint32_t k = 0; k < n; k += kLowRankInputs, w += pairs.bytes) {
    HWY_UNROLL(4)
    for (uint32_t p = 0; p < kPanels; ++p) {
      HWY_UNROLL(4)
      for (size_t v = 0; v < kSumParts; ++v) {
        add(k, pairs.First(w + p * panel_bytes, v), p, v);
        add(k + 4, pairs.Second(w + p * panel_bytes, v), p, v);
      }
    }
  }
  HWY_UNROLL(4)
  for (uint32_t p = 0; p < kPanels; ++p, column += kLowRankColumns) {
    const float scale = args.scales[column / kLowRankColumns];
    HWY_UNROLL(16)
    for (uint32_t r = 0; r < kRows; ++r) {
      const auto factor = hn::Set(df, scale * ranks.At(r).scale);
      HWY_UNROLL(4)
      for (size_t v = 0; v < kSumParts; ++v) {
        const size_t at = column + v * kSumLanes;
        if (kPanels == 1 && at >= args.n) break;
        float* to = out + r * args.out_stride + at;
        const auto product = hn::ConvertTo(df, sums[p][r][v]);
        if (kPanels > 1 || HWY_LIKELY(at + kSumLanes <= args.n)) {
          hn::StoreU(hn::MulAdd(product, factor, hn::LoadU(df, to)), df, to);
        } else {
          const size_t left = args.n - at;
          hn::StoreN(hn::MulAdd(product, factor, hn::LoadN(df, to, left)), df, to, left);
        }
      }
    }
  }
}

// A block's B times n of the ranks, from `first` on, of kRows rows.
template <class Dot, uint32_t kRows>
HWY_INLINE void MultiplyBChunk(const LowRankArgs& args, const RankRows& ranks, uint32_t first,
                               uint32_t n, float* out) {
  // A lone row hides the latency of products by several panels at a time.
  constexpr uint32_t kPanels = kRows == 1 && kSumParts < 4 ? 4 / kSumParts : 1;
  const uint64_t panel_bytes = LowRankPanelBytes(args.dtype, args.inputs);
  const std::byte* panel = args.panels + LowRankPanelBytes(args.dtype, first);
  uint32_t column = 0;
  if constexpr (kPanels > 1) {
    constexpr uint32_t kStep = kPanels * kLowRankColumns;
    for (; column + kStep <= args.n; column += kStep, panel += kPanels * panel_bytes) {
      MultiplyBPanels<Dot, kRows, kPanels>(args, panel, panel_bytes, ranks, n, column, out);
    }
  }
  for (; column < args.n; column += kLowRankColumns, panel += panel_bytes) {
    MultiplyBPanels<Dot, kRows, 1>(args, panel, panel_bytes, ranks, n, column, out);
  }
}

template <class Dot, uint32_t kRows>
HWY_INLINE void MultiplyBTiles(const LowRankArgs& args, const RankRows& rounded, uint32_t* row) {
  for (; *row + kRows <= args.n_rows; *row += kRows) {
    const float* y = args.x + *row * args.x_stride;
    float* out = args.out + *row * args.out_stride;
    for (uint32_t first = 0; first < args.inputs; first += kRankChunk) {
      const uint32_t n = HWY_MIN(kRankChunk, args.inputs - first);
      RoundedRanks here[kRows];
      RankRows ranks = rounded;
      if (rounded.first != nullptr) {
        ranks.first += *row * ranks.stride + first / kRankChunk * sizeof(RoundedRanks);
      } else {
        for (uint32_t r = 0; r < kRows; ++r) RoundChunk(y + r * args.x_stride + first, n, &here[r]);
        ranks = {reinterpret_cast<const std::byte*>(here), sizeof(RoundedRanks)};
      }
      MultiplyBChunk<Dot, kRows>(args, ranks, first, n, out);
    }
  }
}

template <class Dot>
void LowRankIntegerB(const LowRankArgs& args, const RankRows& ranks) {
  uint32_t row = 0;
  MultiplyBTiles<Dot, Dot::kRows>(args, ranks, &row);
  if (Dot::kFewRows < Dot::kRows) MultiplyBTiles<Dot, Dot::kFewRows>(args, ranks, &row);
  if (Dot::kFewRows > 1) MultiplyBTiles<Dot, 1>(args, ranks, &row);
}

void AnyLowRankIntegerA(const QuantizedLowRank& args) { LowRankIntegerA<AnyDot>(args); }
void AnyLowRankIntegerB(const LowRankArgs& args, const RankRows& ranks) {
  LowRankIntegerB<AnyDot>(args, ranks);
}
#if HWY_TARGET == HWY_AVX3
void DotLowRankIntegerA(const QuantizedLowRank& args) { LowRankIntegerA<VnniDot>(args); }
void DotLowRankIntegerB(const LowRankArgs& args, const RankRows& ranks) {
  LowRankIntegerB<VnniDot>(args, ranks);
}
#elif HWY_ARCH_ARM_A64
void DotLowRankIntegerA(const QuantizedLowRank& args) { LowRankIntegerA<SdotDot>(args); }
void DotLowRankIntegerB(const LowRankArgs& args, const RankRows& ranks) {
  LowRankIntegerB<SdotDot>(args, ranks);
}
#endif

}  // namespace arn::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace arn::cpu {

HWY_EXPORT(AnyLowRankIntegerA);
HWY_EXPORT(AnyLowRankIntegerB);
HWY_EXPORT(RoundLowRank);

LowRankIntegerKernels ChooseLowRankInteger() {
  const auto round = HWY_DYNAMIC_POINTER(RoundLowRank);
  // As for matmuls (integer_tile.cc), instructions beyond those of a target are no further target.
#if HWY_TARGETS & HWY_AVX3
  if (HasByteDots()) {
    return {N_AVX3::DotLowRankIntegerA, round, N_AVX3::DotLowRankIntegerB};
  }
#elif HWY_ARCH_ARM_A64
  if (HasByteDots()) {
    return {HWY_STATIC_DISPATCH(DotLowRankIntegerA), round,
            HWY_STATIC_DISPATCH(DotLowRankIntegerB)};
  }
#endif
  return {HWY_DYNAMIC_POINTER(AnyLowRankIntegerA), round, HWY_DYNAMIC_POINTER(AnyLowRankIntegerB)};
}

}  // namespace arn::cpu
#endif
