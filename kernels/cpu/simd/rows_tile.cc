// Weights in the layout that a device reads (kernels/pack/device_rows.h), times a tile of rows: for
// a CPU that shares them with the device instead of holding them in panels of its own.
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
#include "platform/base/layout.h"

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
// Activation rows of a tile: a batch's tokens. Fewer than those of panels, whose columns need no
// sums across lanes.
constexpr uint32_t kRowsOfTile = 4;
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

// Heads: those of kTogether rows.
struct Heads {
  Four scales, bias, sums;

  // Reads those of n rows; the others have those of the last.
  HWY_INLINE Heads(const std::byte* from, uint32_t n) {
    Four padding;
    if (n == kTogether) {
      hn::LoadInterleaved4(DFour(), reinterpret_cast<const float*>(from), scales, bias, sums,
                           padding);
      return;
    }
    HWY_ALIGN float all[kTogether * kDeviceHeadBytes / sizeof(float)];
    auto* to = reinterpret_cast<std::byte*>(all);
    for (uint32_t i = 0; i < kTogether; ++i) {
      std::memcpy(to + i * kDeviceHeadBytes, from + HWY_MIN(i, n - 1) * kDeviceHeadBytes,
                  kDeviceHeadBytes);
    }
    hn::LoadInterleaved4(DFour(), all, scales, bias, sums, padding);
  }
};

template <class V>
HWY_INLINE hn::Vec<hn::BlockDFromD<hn::DFromV<V>>> SumLanes(const V (&v)[kTogether]) {
  return ReduceFour(v, [](auto a, auto b) HWY_ATTR { return hn::Add(a, b); });
}

// Bytes of a tile's activations, and of kTogether rows of the matrix.
template <uint32_t kRows>
struct Inputs {
  const std::byte* a[kRows];
  const std::byte *rows[kTogether], *blocks[kTogether];
};

// Kernels provide Sums(args, inputs, heads, y), the products of kRows activation rows and kTogether
// rows of the matrix, with their bias.

template <class Dot>
struct Int8Rows {
  template <uint32_t kRows>
  static HWY_INLINE void Sums(const TileArgs& args, const Inputs<kRows>& in, const Heads& heads,
                              Four (&y)[kRows]) {
    VI dots[kRows][kTogether];
    HWY_UNROLL(4)
    for (auto& of_row : dots) {
      HWY_UNROLL(4)
      for (VI& dot : of_row) dot = hn::Zero(DI32());
    }
    uint32_t k = 0;
    for (; k + kVectorBytes <= args.k; k += kVectorBytes) {
      Add(in, dots, [&](const std::byte* from) HWY_ATTR {
        return hn::LoadU(DU8(), reinterpret_cast<const uint8_t*>(from) + k);
      });
      HWY_UNROLL(4)
      for (const std::byte* row : in.rows) __builtin_prefetch(row + k + kWeightsAhead, 0, 2);
    }
    if (const size_t left = args.k - k; left != 0) {
      Add(in, dots, [&](const std::byte* from) HWY_ATTR {
        return hn::LoadN(DU8(), reinterpret_cast<const uint8_t*>(from) + k, left);
      });
    }
    const hn::RebindToSigned<DFour> di;
    HWY_UNROLL(4)
    for (uint32_t r = 0; r < kRows; ++r) {
      const QuantizedRow& row = args.quantized[HWY_MIN(r, args.rows - 1)];
      const auto zero_points =
          hn::Mul(hn::BitCast(di, heads.sums), hn::Set(di, row.zero_point + Dot::kOffset));
      const Four sums = hn::ConvertTo(DFour(), hn::Sub(SumLanes(dots[r]), zero_points));
      y[r] = hn::MulAdd(hn::Mul(sums, hn::Set(DFour(), row.scale)), heads.scales, heads.bias);
    }
  }

 private:
  template <uint32_t kRows, class Load>
  static HWY_INLINE void Add(const Inputs<kRows>& in, VI (&dots)[kRows][kTogether],
                             const Load& load) {
    typename Dot::Activations x[kRows];
    HWY_UNROLL(4)
    for (uint32_t r = 0; r < kRows; ++r) x[r] = Dot::Of(load(in.a[r]));
    HWY_UNROLL(4)
    for (uint32_t i = 0; i < kTogether; ++i) {
      const Values w = hn::BitCast(DI8(), load(in.rows[i]));
      HWY_UNROLL(4)
      for (uint32_t r = 0; r < kRows; ++r) Dot::Add(x[r], w, &dots[r][i]);
    }
  }
};

// A block's values are in a vector's 128 bits: elements 8 j to 8 j + 3 in the low halves of word j,
// and the next four in its high halves.
template <class Dot>
struct Int4Rows {
  static constexpr size_t kBlockBytes = kInt4BlockSize / 2;
  static constexpr size_t kBlocks = kVectorBytes / kBlockBytes;  // of a vector
  static constexpr size_t kScaleBytes = kBlocks * sizeof(uint16_t);

  template <uint32_t kRows>
  static HWY_INLINE void Sums(const TileArgs& args, const Inputs<kRows>& in, const Heads& heads,
                              Four (&y)[kRows]) {
    VF sums[kRows][kTogether];
    HWY_UNROLL(4)
    for (auto& of_row : sums) {
      HWY_UNROLL(4)
      for (VF& sum : of_row) sum = hn::Zero(DF());
    }
    const size_t n = args.k / kInt4BlockSize;
    size_t block = 0;
    for (; block + kBlocks <= n; block += kBlocks) {
      Add(in, block, kBlocks, sums, [](const std::byte* from, size_t) HWY_ATTR {
        return hn::LoadU(DU8(), reinterpret_cast<const uint8_t*>(from));
      });
      HWY_UNROLL(4)
      for (const std::byte* row : in.rows) {
        __builtin_prefetch(row + block * kBlockBytes + kWeightsAhead, 0, 2);
      }
    }
    if (const size_t left = n - block; left != 0) {
      const size_t end = left * kInt4BlockSize;
      Add(in, block, left, sums, [&](const std::byte* from, size_t at) HWY_ATTR {
        return at >= end ? hn::Zero(DU8())
                         : hn::LoadN(DU8(), reinterpret_cast<const uint8_t*>(from), end - at);
      });
    }
    HWY_UNROLL(4)
    for (uint32_t r = 0; r < kRows; ++r) {
      const QuantizedRow& row = args.quantized[HWY_MIN(r, args.rows - 1)];
      const auto offset = static_cast<float>(row.zero_point + Dot::kOffset);
      const Four zero_points = hn::Mul(heads.sums, hn::Set(DFour(), offset));
      y[r] = hn::Add(hn::Mul(hn::Sub(SumLanes(sums[r]), zero_points), hn::Set(DFour(), row.scale)),
                     heads.bias);
    }
  }

 private:
  // Adds the products of `n` blocks. load(from, at): activations, `at` bytes behind the first.
  template <uint32_t kRows, class Load>
  static HWY_INLINE void Add(const Inputs<kRows>& in, size_t block, size_t n,
                             VF (&sums)[kRows][kTogether], const Load& load) {
    typename Dot::Activations low[kRows], high[kRows];
    VI minus[kRows];
    HWY_UNROLL(4)
    for (uint32_t r = 0; r < kRows; ++r) {
      const std::byte* from = in.a[r] + block * kInt4BlockSize;
      const auto a0 = hn::BitCast(DI32(), load(from, 0));
      const auto a1 = hn::BitCast(DI32(), load(from + kVectorBytes, kVectorBytes));
      low[r] = Dot::Of(hn::BitCast(DU8(), hn::ConcatEven(DI32(), a1, a0)));
      high[r] = Dot::Of(hn::BitCast(DU8(), hn::ConcatOdd(DI32(), a1, a0)));
      // Values are stored plus 8.
      minus[r] = hn::Zero(DI32());
      Dot::Add(low[r], hn::Set(DI8(), -8), &minus[r]);
      Dot::Add(high[r], hn::Set(DI8(), -8), &minus[r]);
    }
    const auto mask = hn::Set(DU8(), 0x0F);
    HWY_UNROLL(4)
    for (uint32_t i = 0; i < kTogether; ++i) {
      // The bytes behind the last block are the next row's, or a head's: their scale is 0.
      const auto* at = reinterpret_cast<const uint8_t*>(in.rows[i]) + block * kBlockBytes;
      const Bytes both = hn::LoadU(DU8(), at);
      const Values first = hn::BitCast(DI8(), hn::And(both, mask));
      const Values second = hn::BitCast(DI8(), hn::ShiftRight<4>(both));
      const VF scales = Scales(in.blocks[i] + block * sizeof(uint16_t), n);
      HWY_UNROLL(4)
      for (uint32_t r = 0; r < kRows; ++r) {
        VI dots = minus[r];
        Dot::Add(low[r], first, &dots);
        Dot::Add(high[r], second, &dots);
        sums[r][i] = hn::MulAdd(hn::ConvertTo(DF(), dots), scales, sums[r][i]);
      }
    }
  }

  // The scales of n blocks, each in the lanes of its block; 0 behind them. Reads kScaleBytes.
  static HWY_INLINE VF Scales(const std::byte* from, size_t n) {
    static_assert(kScaleBytes <= kOverreadBytes);
    uint64_t bits = 0;
    std::memcpy(&bits, from, kScaleBytes);
    if (n < kBlocks) bits &= (uint64_t{1} << 16 * n) - 1;
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

  template <uint32_t kRows>
  static HWY_INLINE void Sums(const TileArgs& args, const Inputs<kRows>& in, const Heads& heads,
                              Four (&y)[kRows]) {
    VF totals[kRows][kTogether];
    Clear(totals);
    size_t k = 0;
    while (k + kStep <= args.k) {
      VF sums[kRows][kTogether];
      Clear(sums);
      const size_t end = HWY_MIN(k + kBlock, args.k / kStep * kStep);
      for (; k < end; k += kStep) {
        Add(in, k, sums);
        HWY_UNROLL(4)
        for (const std::byte* row : in.rows) {
          for (size_t line = 0; line < kStep * sizeof(T); line += 64) {
            __builtin_prefetch(row + k * sizeof(T) + line + kWeightsAhead, 0, 2);
          }
        }
      }
      HWY_UNROLL(4)
      for (uint32_t r = 0; r < kRows; ++r) {
        HWY_UNROLL(4)
        for (uint32_t i = 0; i < kTogether; ++i) {
          totals[r][i] = hn::Add(totals[r][i], sums[r][i]);
        }
      }
    }
    if (const size_t left = args.k - k; left != 0) {
      // Padded copies.
      HWY_ALIGN float x[kRows][kStep] = {};
      HWY_ALIGN T weights[kTogether][kStep] = {};
      Inputs<kRows> last;
      for (uint32_t r = 0; r < kRows; ++r) {
        std::memcpy(x[r], in.a[r] + k * sizeof(float), left * sizeof(float));
        last.a[r] = reinterpret_cast<const std::byte*>(x[r]);
      }
      for (uint32_t i = 0; i < kTogether; ++i) {
        std::memcpy(weights[i], in.rows[i] + k * sizeof(T), left * sizeof(T));
        last.rows[i] = reinterpret_cast<const std::byte*>(weights[i]);
      }
      Add(last, 0, totals);
    }
    HWY_UNROLL(4)
    for (uint32_t r = 0; r < kRows; ++r) y[r] = hn::Add(SumLanes(totals[r]), heads.bias);
  }

 private:
  template <uint32_t kRows>
  static HWY_INLINE void Clear(VF (&sums)[kRows][kTogether]) {
    HWY_UNROLL(4)
    for (auto& of_row : sums) {
      HWY_UNROLL(4)
      for (VF& sum : of_row) sum = hn::Zero(DF());
    }
  }
  // Adds the products of elements [k, k + kStep).
  template <uint32_t kRows>
  static HWY_INLINE void Add(const Inputs<kRows>& in, size_t k, VF (&sums)[kRows][kTogether]) {
    VF x0[kRows], x1[kRows];
    HWY_UNROLL(4)
    for (uint32_t r = 0; r < kRows; ++r) {
      const float* x = reinterpret_cast<const float*>(in.a[r]) + k;
      x0[r] = hn::LoadU(DF(), x);
      x1[r] = hn::LoadU(DF(), x + kLanes);
      Type::Arrange(&x0[r], &x1[r]);
    }
    HWY_UNROLL(4)
    for (uint32_t i = 0; i < kTogether; ++i) {
      VF w0, w1;
      Type::Widen(reinterpret_cast<const T*>(in.rows[i]) + k, &w0, &w1);
      HWY_UNROLL(4)
      for (uint32_t r = 0; r < kRows; ++r) {
        sums[r][i] = hn::MulAdd(x1[r], w1, hn::MulAdd(x0[r], w0, sums[r][i]));
      }
    }
  }
};

// A tile of fewer rows repeats the last one.
template <class Kernel, uint32_t kRows>
void RunRows(const TileArgs& args) {
  const DeviceRowsAt& at = args.in_rows;
  Inputs<kRows> in;
  for (uint32_t r = 0; r < kRows; ++r) {
    in.a[r] = static_cast<const std::byte*>(args.a) + HWY_MIN(r, args.rows - 1) * at.a_row_bytes;
  }
  for (uint32_t first = 0; first < args.n; first += kTogether) {
    const uint32_t n = HWY_MIN(kTogether, args.n - first);
    for (uint32_t i = 0; i < kTogether; ++i) {
      const size_t row = first + HWY_MIN(i, n - 1);
      in.rows[i] = at.values + row * at.row_bytes;
      in.blocks[i] = at.blocks + row * at.block_row_bytes;
    }
    const Heads heads(at.heads + size_t{first} * kDeviceHeadBytes, n);
    Four y[kRows];
    Kernel::Sums(args, in, heads, y);
    HWY_UNROLL(4)
    for (uint32_t r = 0; r < kRows; ++r) {
      if (r >= args.rows) break;
      float* c = args.c + r * args.c_stride + first;
      if (args.accumulate) y[r] = hn::Add(hn::LoadN(DFour(), c, n), y[r]);
      hn::StoreN(y[r], DFour(), c, n);
    }
  }
}

template <class Kernel>
void RunTile(const TileArgs& args) {
  return args.rows == 1 ? RunRows<Kernel, 1>(args) : RunRows<Kernel, kRowsOfTile>(args);
}

template <class Dot>
TileFn Integers(DType dtype) {
  return dtype == DType::kInt8 ? RunTile<Int8Rows<Dot>> : RunTile<Int4Rows<Dot>>;
}

TileFn RowsTile(DType dtype, [[maybe_unused]] bool has_byte_dots) {
  if (dtype == DType::kF32) return RunTile<FloatRows<F32Values>>;
  if (dtype == DType::kF16) return RunTile<FloatRows<F16Values>>;
  if (dtype == DType::kBf16) return RunTile<FloatRows<Bf16Values>>;
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

HWY_EXPORT(RowsTile);
TileKernel ChooseRowsTile(DType dtype) {
  ChooseTargets();
  TileKernel kernel;
  kernel.run = HWY_DYNAMIC_DISPATCH(RowsTile)(dtype, HasByteDots());
  if (kernel.run == nullptr) return {};
  kernel.layout = {WeightOrder::kDeviceRows};
  kernel.rows = 4;
  return kernel;
}

}  // namespace arn::cpu
#endif
