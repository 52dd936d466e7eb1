// Weights in the layout that a device reads (kernels/pack/device_rows.h), times one row: for a CPU
// that shares them with the device instead of holding them in panels of its own.
//
// A matrix is read once, from front to back, several rows of it side by side: their sums do not
// wait for each other, and what is done to an activation is done once for all. int8 has the bits
// of the kernels of panels, whatever the instructions: sums are whole numbers until the end.
#include "kernels/cpu/cpu_features.h"
#include "kernels/cpu/sdot.h"
#include "kernels/cpu/simd/targets.h"
#include "kernels/cpu/simd/tile.h"
#include "kernels/cpu/vnni.h"
#include "kernels/pack/device_rows.h"
#if defined(__aarch64__)
#include <cpuinfo.h>
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/simd/rows_tile.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include <cstring>

#include "kernels/cpu/simd/reduce_four-inl.h"

HWY_BEFORE_NAMESPACE();
namespace arn::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using DI32 = hn::CappedTag<int32_t, 16>;
using DF = hn::Rebind<float, DI32>;
using DU8 = hn::Repartition<uint8_t, DI32>;
using DI8 = hn::Repartition<int8_t, DI32>;
using VI = hn::Vec<DI32>;
using VF = hn::Vec<DF>;
using Bytes = hn::Vec<DU8>;
using Values = hn::Vec<DI8>;
constexpr size_t kLanes = HWY_MAX_LANES_D(DI32);
constexpr size_t kVectorBytes = 4 * kLanes;

// Rows of the matrix that are read together.
constexpr uint32_t kTogether = 4;
using DFour = hn::FixedTag<float, kTogether>;
using Four = hn::Vec<DFour>;

// How products are added. Activations are stored with 128 more than their integers.
// kOffset: what they are multiplied with.
#if HWY_ARCH_X86
struct PlainDot {
  static constexpr int32_t kOffset = 128;
  using Activations = Bytes;
  static HWY_INLINE Activations Of(Bytes a) { return a; }
  static HWY_INLINE void Add(Activations a, Values w, VI* sum) {
    *sum = hn::SumOfMulQuadAccumulate(DI32(), a, w, *sum);
  }
};
#if HWY_TARGET == HWY_AVX3
struct ByteDot : PlainDot {
  static HWY_INLINE void Add(Activations a, Values w, VI* sum) {
    vnni::AddProducts(a.raw, w.raw, &sum->raw);
  }
};
#endif
#else
struct PlainDot {
  static constexpr int32_t kOffset = 0;
  using Activations = Values;
  static HWY_INLINE Activations Of(Bytes a) {
    return hn::BitCast(DI8(), hn::Xor(a, hn::Set(DU8(), 0x80)));
  }
  static HWY_INLINE void Add(Activations a, Values w, VI* sum) {
    *sum = hn::SumOfMulQuadAccumulate(DI32(), a, w, *sum);
  }
};
#if HWY_ARCH_ARM_A64
struct ByteDot : PlainDot {
  static HWY_INLINE void Add(Activations a, Values w, VI* sum) {
    AddSignedProducts(a.raw, w.raw, &sum->raw);
  }
};
#endif
#endif

// The heads of kTogether rows.
struct Heads {
  Four scales, bias, sums;

  // Of n rows; the others have those of the last.
  HWY_INLINE Heads(const std::byte* from, uint32_t n) {
    HWY_ALIGN float all[kTogether * kDeviceHeadBytes / sizeof(float)];
    auto* to = reinterpret_cast<std::byte*>(all);
    for (uint32_t i = 0; i < kTogether; ++i) {
      std::memcpy(to + i * kDeviceHeadBytes, from + HWY_MIN(i, n - 1) * kDeviceHeadBytes,
                  kDeviceHeadBytes);
    }
    Four padding;
    hn::LoadInterleaved4(DFour(), all, scales, bias, sums, padding);
  }
};

template <class V>
HWY_INLINE hn::Vec<hn::BlockDFromD<hn::DFromV<V>>> SumLanes(const V (&v)[kTogether]) {
  return ReduceFour(v, [](auto a, auto b) HWY_ATTR { return hn::Add(a, b); });
}

// Kernels provide Sums(args, rows, blocks), the products of kTogether rows before their bias, from
// their values and, int4, the scales of their blocks.

template <class Dot>
struct Int8Rows {
  static HWY_INLINE Four Sums(const TileArgs& args, const std::byte* const (&rows)[kTogether],
                              const std::byte* const (&)[kTogether], const Heads& heads) {
    const auto* a = static_cast<const uint8_t*>(args.a);
    VI dots[kTogether];
    HWY_UNROLL(4)
    for (VI& dot : dots) dot = hn::Zero(DI32());
    uint32_t k = 0;
    for (; k + kVectorBytes <= args.k; k += kVectorBytes) {
      const auto x = Dot::Of(hn::LoadU(DU8(), a + k));
      HWY_UNROLL(4)
      for (uint32_t i = 0; i < kTogether; ++i) {
        __builtin_prefetch(rows[i] + k + kWeightsAhead, 0, 2);
        Dot::Add(x, hn::LoadU(DI8(), reinterpret_cast<const int8_t*>(rows[i]) + k), &dots[i]);
      }
    }
    if (const size_t left = args.k - k; left != 0) {
      const auto x = Dot::Of(hn::LoadN(DU8(), a + k, left));
      for (uint32_t i = 0; i < kTogether; ++i) {
        Dot::Add(x, hn::LoadN(DI8(), reinterpret_cast<const int8_t*>(rows[i]) + k, left), &dots[i]);
      }
    }
    const hn::RebindToSigned<DFour> di;
    const QuantizedRow& row = *args.quantized;
    const auto zero_points =
        hn::Mul(hn::BitCast(di, heads.sums), hn::Set(di, row.zero_point + Dot::kOffset));
    const Four sums = hn::ConvertTo(DFour(), hn::Sub(SumLanes(dots), zero_points));
    return hn::MulAdd(hn::Mul(sums, hn::Set(DFour(), row.scale)), heads.scales, heads.bias);
  }
};

// A block's values are in a vector's 128 bits: elements 8 j to 8 j + 3 in the low halves of word j,
// and the next four in its high halves.
template <class Dot>
struct Int4Rows {
  static constexpr size_t kBlockBytes = kInt4BlockSize / 2;
  static constexpr size_t kBlocks = kVectorBytes / kBlockBytes;  // of a vector
  static constexpr size_t kScaleBytes = kBlocks * sizeof(uint16_t);

  static HWY_INLINE Four Sums(const TileArgs& args, const std::byte* const (&rows)[kTogether],
                              const std::byte* const (&blocks)[kTogether], const Heads& heads) {
    VF sums[kTogether];
    HWY_UNROLL(4)
    for (VF& sum : sums) sum = hn::Zero(DF());
    const auto* a = static_cast<const uint8_t*>(args.a);
    const size_t n = args.k / kInt4BlockSize;
    size_t block = 0;
    for (; block + kBlocks <= n; block += kBlocks, a += 2 * kVectorBytes) {
      const auto first = hn::LoadU(DU8(), a), second = hn::LoadU(DU8(), a + kVectorBytes);
      Add(
          first, second, sums,
          [&](uint32_t i) HWY_ATTR {
            const std::byte* at = rows[i] + block * kBlockBytes;
            __builtin_prefetch(at + kWeightsAhead, 0, 2);
            return hn::LoadU(DU8(), reinterpret_cast<const uint8_t*>(at));
          },
          blocks, block, kScaleBytes);
    }
    if (const size_t left = (n - block) * kInt4BlockSize; left != 0) {
      const auto first = hn::LoadN(DU8(), a, left);
      const auto second = left > kVectorBytes
                              ? hn::LoadN(DU8(), a + kVectorBytes, left - kVectorBytes)
                              : hn::Zero(DU8());
      Add(
          first, second, sums,
          [&](uint32_t i) HWY_ATTR {
            return hn::LoadN(DU8(), reinterpret_cast<const uint8_t*>(rows[i]) + block * kBlockBytes,
                             left / 2);
          },
          blocks, block, (n - block) * sizeof(uint16_t));
    }
    const QuantizedRow& row = *args.quantized;
    const Four zero_points =
        hn::Mul(heads.sums, hn::Set(DFour(), static_cast<float>(row.zero_point + Dot::kOffset)));
    return hn::Add(hn::Mul(hn::Sub(SumLanes(sums), zero_points), hn::Set(DFour(), row.scale)),
                   heads.bias);
  }

 private:
  template <class Load>
  static HWY_INLINE void Add(Bytes first, Bytes second, VF (&sums)[kTogether], const Load& load,
                             const std::byte* const (&blocks)[kTogether], size_t block,
                             size_t scale_bytes) {
    const auto a0 = hn::BitCast(DI32(), first), a1 = hn::BitCast(DI32(), second);
    const auto low = Dot::Of(hn::BitCast(DU8(), hn::ConcatEven(DI32(), a1, a0)));
    const auto high = Dot::Of(hn::BitCast(DU8(), hn::ConcatOdd(DI32(), a1, a0)));
    // Values are stored plus 8.
    VI minus = hn::Zero(DI32());
    Dot::Add(low, hn::Set(DI8(), -8), &minus);
    Dot::Add(high, hn::Set(DI8(), -8), &minus);
    const auto mask = hn::Set(DU8(), 0x0F);
    HWY_UNROLL(4)
    for (uint32_t i = 0; i < kTogether; ++i) {
      const Bytes both = load(i);
      VI dots = minus;
      Dot::Add(low, hn::BitCast(DI8(), hn::And(both, mask)), &dots);
      Dot::Add(high, hn::BitCast(DI8(), hn::ShiftRight<4>(both)), &dots);
      sums[i] = hn::MulAdd(hn::ConvertTo(DF(), dots),
                           Scales(blocks[i] + block * sizeof(uint16_t), scale_bytes), sums[i]);
    }
  }

  // Each scale in the lanes of its block; 0 behind n bytes of them.
  static HWY_INLINE VF Scales(const std::byte* from, size_t n) {
    uint64_t bits = 0;
    if (n == kScaleBytes) {
      std::memcpy(&bits, from, kScaleBytes);
    } else {
      std::memcpy(&bits, from, n);
    }
    HWY_ALIGN static constexpr uint8_t kUpper[64] = {
        0x80, 0x80, 0, 1, 0x80, 0x80, 0, 1, 0x80, 0x80, 0, 1, 0x80, 0x80, 0, 1,
        0x80, 0x80, 2, 3, 0x80, 0x80, 2, 3, 0x80, 0x80, 2, 3, 0x80, 0x80, 2, 3,
        0x80, 0x80, 4, 5, 0x80, 0x80, 4, 5, 0x80, 0x80, 4, 5, 0x80, 0x80, 4, 5,
        0x80, 0x80, 6, 7, 0x80, 0x80, 6, 7, 0x80, 0x80, 6, 7, 0x80, 0x80, 6, 7};
    const hn::Repartition<uint64_t, DI32> d64;
    const auto all = hn::BitCast(DU8(), hn::Set(d64, bits));
    return hn::BitCast(DF(), hn::TableLookupBytesOr0(all, hn::Load(DU8(), kUpper)));
  }
};

// Activations of two vectors as they meet the weights that Widen() makes of as many elements.
struct F32Values {
  using T = float;
  static HWY_INLINE void Arrange(VF* /*x0*/, VF* /*x1*/) {}
  static HWY_INLINE void Widen(const T* from, VF* w0, VF* w1) {
    *w0 = hn::LoadU(DF(), from);
    *w1 = hn::LoadU(DF(), from + kLanes);
  }
};
struct F16Values {
  using T = hwy::float16_t;
  static HWY_INLINE void Arrange(VF* /*x0*/, VF* /*x1*/) {}
  static HWY_INLINE void Widen(const T* from, VF* w0, VF* w1) {
    const hn::Rebind<T, DF> d16;
    *w0 = hn::PromoteTo(DF(), hn::LoadU(d16, from));
    *w1 = hn::PromoteTo(DF(), hn::LoadU(d16, from + kLanes));
  }
};
// A word has two elements: the even ones are in w0, the odd ones in w1.
struct Bf16Values {
  using T = uint16_t;
  static HWY_INLINE void Arrange(VF* x0, VF* x1) {
    const VF even = hn::ConcatEven(DF(), *x1, *x0), odd = hn::ConcatOdd(DF(), *x1, *x0);
    *x0 = even;
    *x1 = odd;
  }
  static HWY_INLINE void Widen(const T* from, VF* w0, VF* w1) {
    const hn::RebindToUnsigned<DF> du;
    const auto pairs = hn::BitCast(du, hn::LoadU(hn::Repartition<T, DF>(), from));
    *w0 = hn::BitCast(DF(), hn::ShiftLeft<16>(pairs));
    *w1 = hn::BitCast(DF(), hn::And(pairs, hn::Set(du, 0xFFFF0000u)));
  }
};

template <class Type>
struct FloatRows {
  using T = typename Type::T;
  static constexpr size_t kStep = 2 * kLanes;
  // Each block sums from zero, so that rounding errors do not grow with k.
  static constexpr size_t kBlock = 32 * kStep;

  static HWY_INLINE Four Sums(const TileArgs& args, const std::byte* const (&rows)[kTogether],
                              const std::byte* const (&)[kTogether], const Heads& heads) {
    const auto* x = static_cast<const float*>(args.a);
    VF totals[kTogether];
    HWY_UNROLL(4)
    for (VF& total : totals) total = hn::Zero(DF());
    size_t k = 0;
    while (k + kStep <= args.k) {
      VF sums[kTogether];
      HWY_UNROLL(4)
      for (VF& sum : sums) sum = hn::Zero(DF());
      const size_t end = HWY_MIN(k + kBlock, args.k / kStep * kStep);
      for (; k < end; k += kStep) {
        VF x0 = hn::LoadU(DF(), x + k), x1 = hn::LoadU(DF(), x + k + kLanes);
        Type::Arrange(&x0, &x1);
        HWY_UNROLL(4)
        for (uint32_t i = 0; i < kTogether; ++i) {
          const std::byte* const at = rows[i] + k * sizeof(T);
          for (size_t line = 0; line < kStep * sizeof(T); line += 64) {
            __builtin_prefetch(at + line + kWeightsAhead, 0, 2);
          }
          Add(reinterpret_cast<const T*>(at), x0, x1, &sums[i]);
        }
      }
      HWY_UNROLL(4)
      for (uint32_t i = 0; i < kTogether; ++i) totals[i] = hn::Add(totals[i], sums[i]);
    }
    if (const size_t left = args.k - k; left != 0) {
      HWY_ALIGN float last[kStep] = {};
      std::memcpy(last, x + k, left * sizeof(float));
      VF x0 = hn::LoadU(DF(), last), x1 = hn::LoadU(DF(), last + kLanes);
      Type::Arrange(&x0, &x1);
      for (uint32_t i = 0; i < kTogether; ++i) {
        HWY_ALIGN T weights[kStep] = {};
        std::memcpy(weights, rows[i] + k * sizeof(T), left * sizeof(T));
        Add(weights, x0, x1, &totals[i]);
      }
    }
    return hn::Add(SumLanes(totals), heads.bias);
  }

 private:
  static HWY_INLINE void Add(const T* from, VF x0, VF x1, VF* sum) {
    VF w0, w1;
    Type::Widen(from, &w0, &w1);
    *sum = hn::MulAdd(x1, w1, hn::MulAdd(x0, w0, *sum));
  }
};

template <class Kernel>
void RunRows(const TileArgs& args) {
  const DeviceRowsAt& at = args.in_rows;
  for (uint32_t first = 0; first < args.n; first += kTogether) {
    const uint32_t n = HWY_MIN(kTogether, args.n - first);
    const std::byte *rows[kTogether], *blocks[kTogether];
    for (uint32_t i = 0; i < kTogether; ++i) {
      const size_t row = first + HWY_MIN(i, n - 1);
      rows[i] = at.values + row * at.row_bytes;
      blocks[i] = at.blocks + row * at.block_row_bytes;
    }
    const Heads heads(at.heads + size_t{first} * kDeviceHeadBytes, n);
    Four y = Kernel::Sums(args, rows, blocks, heads);
    float* c = args.c + first;
    if (args.accumulate) y = hn::Add(hn::LoadN(DFour(), c, n), y);
    hn::StoreN(y, DFour(), c, n);
  }
}

template <class Dot>
TileFn Integers(DType dtype) {
  return dtype == DType::kInt8 ? RunRows<Int8Rows<Dot>> : RunRows<Int4Rows<Dot>>;
}

TileFn RowsTile(DType dtype, [[maybe_unused]] bool has_byte_dots) {
  if (dtype == DType::kF32) return RunRows<FloatRows<F32Values>>;
  if (dtype == DType::kF16) return RunRows<FloatRows<F16Values>>;
  if (dtype == DType::kBf16) return RunRows<FloatRows<Bf16Values>>;
  if (dtype != DType::kInt8 && dtype != DType::kInt4) return nullptr;
#if HWY_TARGET == HWY_AVX3 || HWY_ARCH_ARM_A64
  if (has_byte_dots) return Integers<ByteDot>(dtype);
#endif
  return Integers<PlainDot>(dtype);
}

}  // namespace
}  // namespace arn::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace arn::cpu {

// Byte dot products of four, which Highway's targets leave out (integer_tile.cc).
static bool HasByteDotsForRows() {
#if HWY_ARCH_X86
  return (hwy::SupportedTargets() & HWY_AVX3_DL) != 0;
#elif HWY_ARCH_ARM_A64
  return KnowCpu() == Status::kOk && cpuinfo_has_arm_neon_dot();
#else
  return false;
#endif
}

HWY_EXPORT(RowsTile);
TileKernel ChooseRowsTile(DType dtype) {
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  TileKernel kernel;
  kernel.run = HWY_DYNAMIC_DISPATCH(RowsTile)(dtype, HasByteDotsForRows());
  if (kernel.run == nullptr) return {};
  kernel.layout = {WeightOrder::kDeviceRows};
  kernel.rows = 1;
  return kernel;
}

}  // namespace arn::cpu
#endif
