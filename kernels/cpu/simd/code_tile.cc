// Weights of codes (kernels/contract/code_type.h) in panels, times a tile of rows.
//
// Codes become bytes by a lookup in 16, and these meet the activations in byte dot products: a lane
// is an output, an activation quad is broadcast. A block's sum is a whole number, so its order does
// not matter; blocks are added in their order in every tile, so a row gives the same bits in any.
#include "kernels/contract/code_type.h"

#include "kernels/cpu/cpu_features.h"
#include "kernels/cpu/sdot.h"
#include "kernels/cpu/simd/targets.h"
#include "kernels/cpu/simd/tile.h"
#include "kernels/cpu/vnni.h"
#include "kernels/pack/code_panel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/simd/code_tile.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace arn::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using DI32 = hn::CappedTag<int32_t, kCodeColumns>;
using DF = hn::Rebind<float, DI32>;
using DU8 = hn::Repartition<uint8_t, DI32>;
using DI8 = hn::Repartition<int8_t, DI32>;
using VI = hn::Vec<DI32>;
using VF = hn::Vec<DF>;
using Codes = hn::Vec<DU8>;
using Levels = hn::Vec<DI8>;
constexpr size_t kLanes = HWY_MAX_LANES_D(DI32);
constexpr size_t kPanelVectors = kCodeColumns / kLanes;

// As in half_tile.cc: a tile's sums fill the registers, in parts of a panel. A single row takes the
// whole panel at once, because it streams from memory.
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86 && !defined(ARN_SMALL_CODE)
constexpr uint32_t kTileRows = 12;
#elif defined(ARN_SMALL_CODE)
constexpr uint32_t kTileRows = 3;
#else
constexpr uint32_t kTileRows = 4;
#endif
// Where code has to be small, the types of others share a kernel, which asks for theirs; without an
// instruction that looks bytes up, too, since a lookup is much code then.
constexpr CodeType kAnyOfOthers = {DType::kF32, 0, {}, 0, BlockScale::kNested, false};
constexpr bool kShares = HWY_ARCH_ARM_A64 || HWY_TARGET == HWY_SSE2;
template <const CodeType& kType>
constexpr bool kIsAny = kType.bits == 0;
// The types with tables of 16 levels share a kernel, too, which asks for levels and scales.
template <const CodeType& kType>
constexpr bool kAsks = kIsAny<kType> || kType.scale == BlockScale::kNestedBytes;
// Nested scales take registers, too, and blocks of half a unit have two sums.
template <const CodeType& kType>
constexpr bool kIsHalved = kType.block < kCodeUnit;
// Bytes that a single row reads ahead.
constexpr size_t kAhead = 6144;
constexpr size_t kTileVectors = HWY_ARCH_ARM_A64 ? 2 : 1;

// How products are added. kOffset: of the activations from their zero points, as bytes of kByte.
// kTakesBytes: levels may be any bytes; else long ones (CodeType) come as halves.
#if HWY_ARCH_X86
struct PlainDot {
  static constexpr int32_t kOffset = 128;
  static constexpr bool kTakesBytes = false;
  static HWY_INLINE Codes Activations(int32_t quad) {
    return hn::BitCast(DU8(), hn::Set(DI32(), quad));
  }
  // Two products fit 16 bits (CodeType::HasLongLevels).
  static HWY_INLINE void Add(Codes a, Levels w, VI* sum) {
    const hn::Repartition<int16_t, DI32> d16;
    const auto pairs = hn::SatWidenMulPairwiseAdd(d16, a, w);
    *sum = hn::Add(*sum, hn::WidenMulPairwiseAdd(DI32(), pairs, hn::Set(d16, 1)));
  }
};
#if HWY_TARGET == HWY_AVX3
struct VnniDot : PlainDot {
  static constexpr bool kTakesBytes = true;
  static HWY_INLINE void Add(Codes a, Levels w, VI* sum) {
    vnni::AddProducts(a.raw, w.raw, &sum->raw);
  }
};
#endif
#else
struct PlainDot {
  static constexpr int32_t kOffset = 0;
  static constexpr bool kTakesBytes = !HWY_ARCH_ARM_A64;
  static HWY_INLINE Levels Activations(int32_t quad) {
    return hn::Xor(hn::BitCast(DI8(), hn::Set(DI32(), quad)), hn::Set(DI8(), -128));
  }
  static HWY_INLINE void Add(Levels a, Levels w, VI* sum) {
#if HWY_ARCH_ARM_A64
    // Two products fit 16 bits (CodeType::HasLongLevels).
    const int16x8_t low = vmull_s8(vget_low_s8(a.raw), vget_low_s8(w.raw));
    sum->raw = vpadalq_s16(sum->raw, vpaddq_s16(low, vmull_high_s8(a.raw, w.raw)));
#else
    *sum = hn::SumOfMulQuadAccumulate(DI32(), a, w, *sum);
#endif
  }
};
#if HWY_ARCH_ARM_A64
struct SignedDot : PlainDot {
  static constexpr bool kTakesBytes = true;
  static HWY_INLINE void Add(Levels a, Levels w, VI* sum) {
    AddSignedProducts(a.raw, w.raw, &sum->raw);
  }
};
#endif
#endif

// Several types in one kernel are much code: less of it for CPUs without dot products.
template <const CodeType& kType, class Dot>
constexpr bool kIsShort = kIsAny<kType> && !Dot::kTakesBytes;
template <const CodeType& kType, class Dot>
constexpr bool kSplits = !Dot::kTakesBytes && kType.HasLongLevels();
template <const CodeType& kType, class Dot>
constexpr uint32_t kTileRowsOf = kIsShort<kType, Dot>                      ? HWY_MIN(kTileRows, 2)
                                 : kIsHalved<kType> || kSplits<kType, Dot> ? HWY_MIN(kTileRows, 8)
                                 : kType.is_nested()                       ? HWY_MIN(kTileRows, 10)
                                                                           : kTileRows;

// The number of a quad, as a type.
template <size_t kNumber>
struct Quad {
  static constexpr size_t kValue = kNumber;
};

// Where codes of 2 bits lie in a byte, multiplied by 1, 4 and 16; the fourth is shifted.
constexpr size_t kFields = 4;

// A unit's codes, quad by quad: as levels, or as they lie.
template <const CodeType& kType, class Dot>
class Lookup {
 public:
  HWY_INLINE explicit Lookup(const CodeType& type)
      : is_long_(HWY_ARCH_X86 ? type.HasLongLevels() : type.bits == 8) {
    HWY_ALIGN int8_t low[16], high[16];
    for (uint32_t i = 0; i < 16; ++i) {
      low[i] = kAsks<kType> ? type.levels[i] : kType.levels[i % kType.n_levels()];
      high[i] = kType.levels[i / 4];
      // Long levels are halves, one in each table.
      if (kSplits<kType, Dot>) {
        high[i] = static_cast<int8_t>(low[i] / 2);
        low[i] = static_cast<int8_t>(low[i] - high[i]);
      }
    }
    low_ = hn::LoadDup128(DI8(), low);
    high_ = hn::LoadDup128(DI8(), high);
  }

  // The same for any type of others.
  template <class Add>
  HWY_INLINE void ForQuadsOfAny(const CodeType& type, const std::byte* unit, const Add& add) const {
    const uint32_t bits = type.bits;
    Levels levels[kCodeUnit / 4];
    const auto keep = [&](auto quad, Levels of_quad)
                          HWY_ATTR { levels[decltype(quad)::kValue] = of_quad; };
    if (bits == 4) {
      TwoCodes<0>(unit, keep);
      TwoCodes<2>(unit, keep);
      TwoCodes<4>(unit, keep);
      TwoCodes<6>(unit, keep);
      if (!type.has_minimums()) {
        for (Levels& of_quad : levels) of_quad = Look(low_, hn::BitCast(DU8(), of_quad));
      }
    } else if (bits == 6) {
      FourJoined<0>(unit, keep);
      FourJoined<4>(unit, keep);
    } else {
      EightBytes<0, true>(unit, keep);
    }
    for (bool has_halves = !Dot::kTakesBytes && is_long_;; has_halves = false) {
      Levels rest[kCodeUnit / 4];
      HWY_UNROLL(8)
      for (size_t i = 0; !Dot::kTakesBytes && i < kCodeUnit / 4; ++i) {
        const Levels half = hn::ShiftRight<1>(levels[i]);
        rest[i] = hn::Sub(levels[i], half);
        levels[i] = has_halves ? half : levels[i];
      }
      AddEach<0>(levels, add);
      if (!has_halves) break;
      for (size_t i = 0; i < kCodeUnit / 4; ++i) levels[i] = rest[i];
    }
  }

  // Calls add(quad, levels) for every quad, a Quad: sums that it chooses stay in registers. With
  // kTakesFields, levels are the codes times 1, 4, 16 and 1. Without kTakesBytes, long levels come
  // as two halves.
  template <bool kTakesFields, class Add>
  HWY_INLINE void ForQuads(const std::byte* unit, const Add& add) const {
    if constexpr (kTakesFields) {
      FourFields<0>(unit, add);
      FourFields<4>(unit, add);
    } else if constexpr (kType.bits == 2) {
      FourQuads<0>(unit, add);
      FourQuads<4>(unit, add);
    } else if constexpr (kType.bits == 4) {
      TwoCodes<0>(unit, add);
      TwoCodes<2>(unit, add);
      TwoCodes<4>(unit, add);
      TwoCodes<6>(unit, add);
    } else if constexpr (kType.bits == 6) {
      FourJoined<0>(unit, add);
      FourJoined<4>(unit, add);
    } else if constexpr (kType.bits == 8) {
      EightBytes<0, Dot::kTakesBytes>(unit, add);
    } else {
      const Codes a = Load(unit, 0), b = Load(unit, 1), c = Load(unit, 2);
      TwoQuads<0>(a, add);
      TwoQuads<2>(b, add);
      TwoQuads<4>(c, add);
      const Codes spread = hn::Or3(hn::And(Shift<3>(a), hn::Set(DU8(), 0x11)),
                                   hn::And(Shift<2>(b), hn::Set(DU8(), 0x22)),
                                   hn::And(Shift<1>(c), hn::Set(DU8(), 0x44)));
      TwoQuads<6>(spread, add);
    }
  }

 private:
  // The topmost code is shifted: in its place, sums of two products would not fit 16 bits.
  template <size_t kFirst, class Add>
  HWY_INLINE void FourFields(const std::byte* unit, const Add& add) const {
    const Codes four = Load(unit, kFirst / 4);
    add(Quad<kFirst>(), Field(four, 0x03));
    add(Quad<kFirst + 1>(), Field(four, 0x0C));
    add(Quad<kFirst + 2>(), Field(four, 0x30));
    add(Quad<kFirst + 3>(), Field(Shift<6>(four), 0x03));
  }
  static HWY_INLINE Levels Field(Codes codes, int mask) {
    return hn::BitCast(DI8(), hn::And(codes, hn::Set(DU8(), static_cast<uint8_t>(mask))));
  }
  // Half bytes have two codes of 2 bits: a table for each.
  template <size_t kFirst, class Add>
  HWY_INLINE void FourQuads(const std::byte* unit, const Add& add) const {
    const Codes both = Load(unit, kFirst / 4);
    const Codes first = hn::And(both, HalfMask()), second = UpperHalf(both);
    add(Quad<kFirst>(), Look(low_, first));
    add(Quad<kFirst + 1>(), Look(high_, first));
    add(Quad<kFirst + 2>(), Look(low_, second));
    add(Quad<kFirst + 3>(), Look(high_, second));
  }
  template <size_t kFirst, class Add>
  HWY_INLINE void TwoCodes(const std::byte* unit, const Add& add) const {
    const Codes both = Load(unit, kFirst / 2);
    AddLevels<kFirst>(hn::And(both, HalfMask()), add);
    AddLevels<kFirst + 1>(UpperHalf(both), add);
  }
  // Nested codes of 4 bits are their levels; of any type, they are looked up later.
  template <size_t kQuad, class Add>
  HWY_INLINE void AddLevels(Codes codes, const Add& add) const {
    if constexpr (kType.has_minimums()) {
      add(Quad<kQuad>(), hn::BitCast(DI8(), codes));
    } else {
      add(Quad<kQuad>(), Look(low_, codes));
      if constexpr (kSplits<kType, Dot>) add(Quad<kQuad>(), Look(high_, codes));
    }
  }
  // The lower 4 bits, and the upper 2.
  template <size_t kFirst, class Add>
  HWY_INLINE void FourJoined(const std::byte* unit, const Add& add) const {
    const Codes a = Load(unit, kFirst / 2), b = Load(unit, kFirst / 2 + 1);
    const Codes upper = Load(unit, 4 + kFirst / 4);
    add(Quad<kFirst>(), Join(hn::And(a, HalfMask()), ShiftUp<4>(upper)));
    add(Quad<kFirst + 1>(), Join(UpperHalf(a), ShiftUp<2>(upper)));
    add(Quad<kFirst + 2>(), Join(hn::And(b, HalfMask()), upper));
    add(Quad<kFirst + 3>(), Join(UpperHalf(b), Shift<2>(upper)));
  }
  static HWY_INLINE Levels Join(Codes lower, Codes upper) {
    const Codes codes = hn::Or(lower, hn::And(upper, hn::Set(DU8(), 0x30)));
    return hn::BitCast(DI8(), hn::Sub(codes, hn::Set(DU8(), kLeastOf6Bits)));
  }
  template <size_t kQuad, class Add>
  static HWY_INLINE void AddEach(const Levels* levels, const Add& add) {
    add(Quad<kQuad>(), levels[kQuad]);
    if constexpr (kQuad + 1 < kCodeUnit / 4) AddEach<kQuad + 1>(levels, add);
  }
  template <size_t kQuad, bool kIsWhole, class Add>
  HWY_INLINE void EightBytes(const std::byte* unit, const Add& add) const {
    const Levels levels = hn::BitCast(DI8(), Load(unit, kQuad));
    if constexpr (kIsWhole) {
      add(Quad<kQuad>(), levels);
    } else {
      const Levels half = hn::ShiftRight<1>(levels);
      add(Quad<kQuad>(), half);
      add(Quad<kQuad>(), hn::Sub(levels, half));
    }
    if constexpr (kQuad + 1 < kCodeUnit / 4) EightBytes<kQuad + 1, kIsWhole>(unit, add);
  }
  template <size_t kFirst, class Add>
  HWY_INLINE void TwoQuads(Codes both, const Add& add) const {
    add(Quad<kFirst>(), Look(low_, hn::And(both, HalfMask())));
    add(Quad<kFirst + 1>(), Look(low_, UpperHalf(both)));
  }
  static HWY_INLINE Codes Load(const std::byte* unit, uint32_t v) {
    return hn::LoadU(DU8(), reinterpret_cast<const uint8_t*>(unit + v * kCodeVector));
  }
  static HWY_INLINE Levels Look(Levels table, Codes codes) {
    return hn::TableLookupBytes(table, hn::BitCast(DI8(), codes));
  }
  static HWY_INLINE Codes HalfMask() { return hn::Set(DU8(), 0x0F); }
  // Bits cross into the next byte, where a mask removes them.
  template <int kBits>
  static HWY_INLINE Codes Shift(Codes codes) {
    return hn::BitCast(DU8(),
                       hn::ShiftRight<kBits>(hn::BitCast(hn::Repartition<uint16_t, DU8>(), codes)));
  }
  template <int kBits>
  static HWY_INLINE Codes ShiftUp(Codes codes) {
    return hn::BitCast(DU8(),
                       hn::ShiftLeft<kBits>(hn::BitCast(hn::Repartition<uint16_t, DU8>(), codes)));
  }
  static HWY_INLINE Codes UpperHalf(Codes codes) { return hn::And(Shift<4>(codes), HalfMask()); }

  Levels low_, high_;
  // True if levels come as halves without kTakesBytes. On ARM, where activations have signs, only
  // those of -128 have to.
  bool is_long_;
};

HWY_INLINE VF Halves(const std::byte* from) {
  return hn::PromoteTo(DF(), hn::LoadU(hn::Rebind<hwy::float16_t, DF>(),
                                       reinterpret_cast<const hwy::float16_t*>(from)));
}

// Nested scales of kLanes columns: d and, with minimums, e of a super-block.
struct Nested {
  HWY_INLINE void Begin(const std::byte* pair) {
    const hn::Repartition<uint32_t, DI32> d32;
    const hn::Rebind<uint16_t, DI32> d16;
    const auto both = hn::LoadU(d32, reinterpret_cast<const uint32_t*>(pair));
    const auto half = [&](auto bits) HWY_ATTR {
      const auto f16 = hn::BitCast(hn::Rebind<hwy::float16_t, DF>(), hn::TruncateTo(d16, bits));
      return hn::PromoteTo(DF(), f16);
    };
    scale = half(both);
    minimum = half(hn::ShiftRight<16>(both));
  }
  // Returns d s of the block at `place` of the super-block, whose pairs begin at `pairs` and have
  // `of_pair` blocks each. The uppermost byte of each word is s.
  HWY_INLINE VF Scale(const std::byte* pairs, uint32_t place, uint32_t of_pair) const {
    const uint32_t pair = place / of_pair * kCodeVector, bytes = 4 / of_pair;
    const std::byte* end = pairs + pair + (place % of_pair + 1) * bytes;
    const VI words = hn::LoadU(DI32(), reinterpret_cast<const int32_t*>(end - 4));
    return hn::Mul(scale, hn::ConvertTo(DF(), hn::ShiftRight<24>(words)));
  }
  // Adds m of two blocks times the sums of their activations.
  static HWY_INLINE VI AddMinimums(const std::byte* pair, int32_t row_sums, VI sum) {
    const hn::Repartition<int16_t, DI32> d16;
    const VI words = hn::LoadU(DI32(), reinterpret_cast<const int32_t*>(pair));
    const auto minimums = hn::BitCast(d16, hn::And(words, hn::Set(DI32(), 0x00FF00FF)));
    const auto sums = hn::BitCast(d16, hn::Set(DI32(), row_sums));
    return hn::Add(sum, hn::WidenMulPairwiseAdd(DI32(), minimums, sums));
  }

  VF scale, minimum;
};

// Loads the scales of kLanes columns of a block.
template <const CodeType& kType>
HWY_INLINE VF BlockScales(const std::byte* from, uint64_t scale_bytes) {
  if constexpr (kType.scale != BlockScale::kInt8) {
    if (scale_bytes == 0) return hn::Set(DF(), 1.0f);
    return Halves(from);
  } else {
    const hn::Rebind<int8_t, DI32> d;
    const auto bytes = hn::LoadU(d, reinterpret_cast<const int8_t*>(from));
    return hn::ConvertTo(DF(), hn::PromoteTo(DI32(), bytes));
  }
}

// Returns the sum of the activations of a single row's columns [0, n), a multiple of kCodeUnit, as
// Dot takes them.
template <class Dot>
HWY_INLINE int32_t SumOf(const uint8_t* a, uint32_t n) {
  const hn::CappedTag<uint8_t, kCodeUnit> d8;
  const hn::Repartition<uint64_t, decltype(d8)> d64;
  auto sums = hn::Zero(d64);
  for (uint32_t i = 0; i < n; i += HWY_MAX_LANES_D(decltype(d8))) {
    sums = hn::Add(sums, hn::SumsOf8(hn::LoadU(d8, a + i)));
  }
  return static_cast<int32_t>(hn::ReduceSum(d64, sums)) -
         (128 - Dot::kOffset) * static_cast<int32_t>(n);
}

// Computes columns [first, first + kVectors * kLanes) of a panel with n valid columns.
template <const CodeType& kType, class Dot, uint32_t kRows, size_t kVectors>
void Part(const TileArgs& args, const CodeType& asked, const CodePanel& shape,
          const std::byte* panel, size_t first, size_t n, float* c) {
  const DF df;
  const DI32 di32;
  const auto load = [&](uint32_t offset, size_t v) HWY_ATTR {
    const auto* floats = reinterpret_cast<const float*>(panel + offset);
    return hn::LoadU(df, floats + first + v * kLanes);
  };
  VF sums[kRows][kVectors];
  for (uint32_t r = 0; r < kRows; ++r) {
    const auto offset = static_cast<float>(args.quantized[r].zero_point + Dot::kOffset);
    for (size_t v = 0; v < kVectors; ++v) sums[r][v] = hn::Mul(load(0, v), hn::Set(df, offset));
  }
  const CodeType& type = kIsAny<kType> ? asked : kType;
  const bool is_nested = kAsks<kType> ? asked.is_nested() : kType.is_nested();
  const bool has_minimums = type.has_minimums();
  const uint32_t halves = type.block < kCodeUnit ? 2 : 1;
  const Lookup<kType, Dot> lookup(asked);
  const auto* a = static_cast<const uint8_t*>(args.a);
  // Ternary rows may have no scales of blocks.
  const uint64_t scale_bytes =
      kType.scale == BlockScale::kF16 ? shape.scale_bytes : type.scale_bytes();
  const uint64_t column_bytes = is_nested ? 4 : scale_bytes;
  const uint32_t of_pair = has_minimums ? 2 : 4;  // blocks
  const std::byte* scales = panel + CodePanel::kScales + first * column_bytes;
  const std::byte* unit = panel + shape.codes_offset + first * 4;
  const uint32_t units = args.k / kCodeUnit;
  // A single row waits for memory. Its instructions per byte are so many that few loads are under
  // way at once, and the hardware does not see far enough ahead through two areas of a panel.
  const std::byte* ahead = panel + kAhead;
  const uint64_t ahead_step = CeilDiv(shape.bytes, units);
  // A single row has no second use for levels that were looked up, so consecutive ones are the
  // codes plus the first level, which is multiplied by the sum of the activations. On ARM a lookup
  // takes no longer than a mask.
  constexpr bool kTakesFields = HWY_ARCH_X86 && kRows == 1 && kType.bits == 2 && kType.HasSteps();
  // Products with levels less their middle, and minimums times the sums of the activations: with
  // the activations' offsets both would be large. The middle times the offset is a block's
  // beginning.
  const int32_t beginning = -type.middle() * static_cast<int32_t>(type.block);
  int32_t beginnings[kRows];
  for (uint32_t r = 0; r < kRows; ++r) {
    beginnings[r] = beginning * (args.quantized[r].zero_point + Dot::kOffset);
  }
  Nested nested[kVectors];
  for (size_t v = 0; kAsks<kType> && v < kVectors; ++v) {
    nested[v].scale = nested[v].minimum = hn::Zero(df);
  }
  const std::byte* row_sums = static_cast<const std::byte*>(args.a) + size_t{kRows} * args.k;
  uint32_t super_left = 0, place = 0, first_of_super = 0;
  // A single vector of a single row has several sums, so that they do not wait for each other.
  constexpr bool kHasHalves = kIsAny<kType> || kIsHalved<kType>;
  constexpr uint32_t kChains = kTakesFields                                   ? kFields
                               : kHasHalves                                   ? 2
                               : kType.has_minimums() || kRows * kVectors > 1 ? 1
                                                                              : 2;
  for (uint32_t u = 0; u < units; scales += is_nested ? 0 : kCodeColumns * scale_bytes) {
    VI dots[kChains][kRows][kVectors];
    HWY_UNROLL(4)
    for (uint32_t i = 0; i < kChains; ++i) {
      HWY_UNROLL(16)
      for (uint32_t r = 0; r < kRows; ++r) {
        HWY_UNROLL(4)
        for (size_t v = 0; v < kVectors; ++v) {
          dots[i][r][v] = i == 0 && beginning != 0 ? hn::Set(di32, beginnings[r]) : hn::Zero(di32);
        }
      }
    }
    // A constant number of units leaves no loop.
    constexpr uint32_t kUnits = HWY_MAX(kType.block / kCodeUnit, 1);
    const uint32_t end = kUnits == 1 ? u + 1 : HWY_MIN(u + kUnits, units);
    if (is_nested) {
      if (super_left == 0) {
        super_left = HWY_MIN(shape.super_blocks / halves, units - u);
        place = 0;
        first_of_super = u * halves;
        for (size_t v = 0; v < kVectors; ++v) {
          nested[v].Begin(scales + v * kLanes * column_bytes);
        }
        scales += kCodeVector;
      }
    }
    VI first_levels = hn::Zero(di32);
    if constexpr (kTakesFields) {
      first_levels = hn::Set(di32, kType.levels[0] * SumOf<Dot>(a, (end - u) * kCodeUnit));
    }
    for (; u < end; ++u, unit += shape.unit_bytes, a += size_t{kCodeUnit} * kRows) {
      if constexpr (kRows == 1) {
        for (uint64_t i = 0; i <= type.bits; ++i) __builtin_prefetch(ahead + i * kCodeVector);
        ahead += ahead_step;
      }
      HWY_UNROLL(4)
      for (size_t v = 0; v < kVectors; ++v) {
        const auto add = [&](auto quad, Levels levels) HWY_ATTR {
          constexpr size_t kQuad = decltype(quad)::kValue;
          constexpr size_t kChain = kHasHalves ? kQuad / 4 : kQuad % kChains;
          HWY_UNROLL(16)
          for (uint32_t r = 0; r < kRows; ++r) {
            int32_t word;
            std::memcpy(&word, a + (kQuad * kRows + r) * 4, sizeof word);
            Dot::Add(Dot::Activations(word), levels, &dots[kChain][r][v]);
          }
        };
        const std::byte* from = unit + v * kLanes * 4;
        if constexpr (kIsAny<kType>) {
          lookup.ForQuadsOfAny(type, from, add);
        } else {
          lookup.template ForQuads<kTakesFields>(from, add);
        }
      }
    }
    HWY_UNROLL(4)
    for (size_t v = 0; v < kVectors; ++v) {
      VF scale;
      const std::byte* from = scales + v * kLanes * column_bytes;
      if (halves == 2) {
        const VF second = nested[v].Scale(from, place + 1, of_pair);
        HWY_UNROLL(16)
        for (uint32_t r = 0; r < kRows; ++r) {
          sums[r][v] = hn::MulAdd(hn::ConvertTo(df, dots[kChains - 1][r][v]), second, sums[r][v]);
        }
      }
      if (is_nested) {
        scale = nested[v].Scale(from, place, of_pair);
      } else {
        scale = BlockScales<kType>(from, scale_bytes);
      }
      HWY_UNROLL(16)
      for (uint32_t r = 0; r < kRows; ++r) {
        VI dot = dots[0][r][v];
        if constexpr (kTakesFields) {
          // Exact: all bits that are lost are zeros.
          const VI fields =
              hn::Add(hn::ShiftRight<2>(dots[1][r][v]), hn::ShiftRight<4>(dots[2][r][v]));
          dot = hn::Add(hn::Add(dot, dots[3][r][v]), hn::Add(fields, first_levels));
        } else {
          for (uint32_t i = 1; halves == 1 && i < kChains; ++i) dot = hn::Add(dot, dots[i][r][v]);
        }
        sums[r][v] = hn::MulAdd(hn::ConvertTo(df, dot), scale, sums[r][v]);
      }
    }
    if (is_nested) {
      place += halves;
      if (--super_left != 0) continue;
      const std::byte* pairs = scales;
      const uint32_t n_pairs = CeilDiv(place, of_pair);
      scales += n_pairs * kCodeVector;
      if (!has_minimums) continue;
      const std::byte* pair_sums = row_sums + first_of_super / 2 * size_t{kRows} * 4;
      const uint32_t shift = first_of_super % 2 * 16;  // a super-block of one block
      HWY_UNROLL(4)
      for (size_t v = 0; v < kVectors; ++v) {
        VI minimums[kRows];
        HWY_UNROLL(16)
        for (uint32_t r = 0; r < kRows; ++r) minimums[r] = hn::Zero(di32);
        for (uint32_t pair = 0; pair < n_pairs; ++pair) {
          const std::byte* from = pairs + pair * kCodeVector + v * kLanes * 4;
          HWY_UNROLL(16)
          for (uint32_t r = 0; r < kRows; ++r) {
            int32_t word;
            std::memcpy(&word, pair_sums + (size_t{pair} * kRows + r) * 4, sizeof word);
            minimums[r] = Nested::AddMinimums(from, word >> shift, minimums[r]);
          }
        }
        HWY_UNROLL(16)
        for (uint32_t r = 0; r < kRows; ++r) {
          sums[r][v] = hn::NegMulAdd(hn::ConvertTo(df, minimums[r]), nested[v].minimum, sums[r][v]);
        }
      }
    }
  }
  for (uint32_t r = 0; r < kRows; ++r) {
    for (size_t v = 0; v < kVectors; ++v) {
      const size_t at = first + v * kLanes;
      if (at >= n) break;
      float* to = c + r * args.c_stride + at;
      VF y = hn::MulAdd(hn::Mul(sums[r][v], hn::Set(df, args.quantized[r].scale)),
                        load(CodePanel::kRowScales, v), load(CodePanel::kBias, v));
      if (args.accumulate) y = hn::Add(y, hn::LoadN(df, to, n - at));
      hn::StoreN(y, df, to, n - at);
    }
  }
}

template <const CodeType& kType, class Dot, uint32_t kRows = 1>
void RunCodes(const TileArgs& args) {
  if constexpr (kRows < kTileRowsOf<kType, Dot>) {
    if (args.rows > kRows) return RunCodes<kType, Dot, kRows + 1>(args);
  }
  constexpr bool kTakesPanel = kRows == 1 && !kIsShort<kType, Dot>;
  constexpr size_t kVectors = kTakesPanel ? kPanelVectors : HWY_MIN(kTileVectors, kPanelVectors);
  // Several types have the same codes.
  const CodeType& asked = *FindCodeType(args.dtype);
  const CodePanel shape(asked, args.k);
  const std::byte* panel = args.panels;
  for (uint32_t column = 0; column < args.n; column += kCodeColumns, panel += shape.bytes) {
    const size_t n = HWY_MIN(kCodeColumns, args.n - column);
    for (size_t first = 0; first < n; first += kVectors * kLanes) {
      Part<kType, Dot, kRows, kVectors>(args, asked, shape, panel, first, n, args.c + column);
    }
  }
}

template <const CodeType& kType, class Dot>
TileKernel KernelOf() {
  return {kCodeLayout, kTileRowsOf<kType, Dot>, RunCodes<kType, Dot>};
}

template <class Dot>
TileKernel Choose(DType dtype) {
  if (IsTernary(dtype)) return KernelOf<kTernaryCodes, Dot>();
  if constexpr (kShares) {
    if (IsOfOthers(dtype)) return KernelOf<kAnyOfOthers, Dot>();
  } else {
    if (IsInt4K(dtype)) return KernelOf<kInt4KCodes, Dot>();
    if (dtype == DType::kInt8K256) return KernelOf<kInt8K256Codes, Dot>();
    if (HasMinimums(dtype)) return KernelOf<kInt6KCodes, Dot>();
    if (dtype == DType::kInt8K) return KernelOf<kInt8KCodes, Dot>();
    // Beside the kernel that asks for levels and scales: its one row was not always as fast.
    if (dtype == DType::kFp4) return KernelOf<kFp4Codes, Dot>();
    if (IsOfOthers(dtype)) return KernelOf<kIq4KCodes, Dot>();
  }
  return dtype == DType::kInt2 ? KernelOf<kInt2Codes, Dot>() : KernelOf<kInt3Codes, Dot>();
}
}  // namespace

TileKernel CodeTile(DType dtype, bool has_dot) {
#if HWY_TARGET == HWY_AVX3
  return has_dot ? Choose<VnniDot>(dtype) : Choose<PlainDot>(dtype);
#elif HWY_ARCH_ARM_A64
  return has_dot ? Choose<SignedDot>(dtype) : Choose<PlainDot>(dtype);
#else
  (void)has_dot;
  return Choose<PlainDot>(dtype);
#endif
}

}  // namespace arn::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace arn::cpu {

HWY_EXPORT(CodeTile);
TileKernel ChooseCodeTile(DType dtype) {
  ChooseTargets();
  return HWY_DYNAMIC_DISPATCH(CodeTile)(dtype, HasByteDots());
}

}  // namespace arn::cpu
#endif
