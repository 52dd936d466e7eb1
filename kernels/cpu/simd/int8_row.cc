// int8 weights in XNNPACK's panels of 16 columns by 8 values, times one row, with AVX-512 VNNI.
//
// XNNPACK's kernel for one row asks for its weights 0.9 KB ahead, and keeps the CPU from asking
// further ahead by itself: without that the weights come up to 1.4 times as fast (Zen 4). This one
// adds up the same integers, rounds their sum alike, and can add it to what is there.
#include <cstring>

#include "kernels/cpu/simd/targets_dot.h"
#include "kernels/cpu/simd/tile.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/simd/int8_row.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace arn::cpu::HWY_NAMESPACE {

#if HWY_TARGET <= HWY_AVX3_DL && HWY_ARCH_X86
namespace hn = hwy::HWY_NAMESPACE;

constexpr size_t kColumns = 16;
// Values of a column that lie together, and bytes of them in a panel.
constexpr size_t kGroup = 8;
constexpr size_t kGroupBytes = kColumns * kGroup;

using DI32 = hn::FixedTag<int32_t, 16>;
using VI = hn::Vec<DI32>;

// Of 8 columns: one column's sum has two lanes.
HWY_INLINE VI AddProducts(VI sums, VI values, const std::byte* weights) {
  const hn::Repartition<uint8_t, DI32> du8;
  const hn::Repartition<int8_t, DI32> di8;
  return hn::SumOfMulQuadAccumulate(DI32(), hn::BitCast(du8, values),
                                    hn::LoadU(di8, reinterpret_cast<const int8_t*>(weights)), sums);
}

// The group's 8 values, 128 more than they are.
HWY_INLINE VI Values(const int8_t* a) {
  const hn::Repartition<int64_t, DI32> di64;
  int64_t group;
  std::memcpy(&group, a, sizeof group);
  return hn::Xor(hn::BitCast(DI32(), hn::Set(di64, group)),
                 hn::Set(DI32(), static_cast<int32_t>(0x80808080u)));
}

// n <= kColumns columns. groups > 0.
void Panel(const TileArgs& args, const std::byte* w, size_t groups, size_t n, float* c) {
  const DI32 di32;
  const hn::Rebind<float, DI32> df;
  const auto* a = static_cast<const int8_t*>(args.a);
  const auto minus_sums = hn::LoadU(di32, reinterpret_cast<const int32_t*>(w));
  w += kColumns * sizeof(int32_t);
  VI even[2] = {hn::Zero(di32), hn::Zero(di32)}, odd[2] = {hn::Zero(di32), hn::Zero(di32)};
  size_t i = 0;
  for (; i + 2 <= groups; i += 2, a += 2 * kGroup, w += 2 * kGroupBytes) {
    const VI first = Values(a), second = Values(a + kGroup);
    even[0] = AddProducts(even[0], first, w);
    even[1] = AddProducts(even[1], first, w + 64);
    odd[0] = AddProducts(odd[0], second, w + 128);
    odd[1] = AddProducts(odd[1], second, w + 192);
  }
  if (i < groups) {
    const VI first = Values(a);
    even[0] = AddProducts(even[0], first, w);
    even[1] = AddProducts(even[1], first, w + 64);
    w += kGroupBytes;
  }
  const VI low = hn::Add(even[0], odd[0]), high = hn::Add(even[1], odd[1]);
  VI sums = hn::Add(hn::ConcatEven(di32, high, low), hn::ConcatOdd(di32, high, low));
  sums = hn::Add(sums, hn::Mul(minus_sums, hn::Set(di32, args.quantized->zero_point + 128)));
  const auto scales = hn::LoadU(df, reinterpret_cast<const float*>(w));
  const auto bias = hn::LoadU(df, reinterpret_cast<const float*>(w) + kColumns);
  const auto scaled = hn::Mul(hn::ConvertTo(df, sums), hn::Set(df, args.quantized->scale));
  auto y = hn::MulAdd(scaled, scales, bias);
  if (args.accumulate) y = hn::Add(hn::LoadN(df, c, n), y);
  hn::StoreN(y, df, c, n);
}

void Row(const TileArgs& args) {
  const size_t groups = (args.k + kGroup - 1) / kGroup;
  const size_t panel_bytes = 3 * kColumns * sizeof(float) + groups * kGroupBytes;
  const std::byte* panel = args.panels;
  for (uint32_t column = 0; column < args.n; column += kColumns, panel += panel_bytes) {
    Panel(args, panel, groups, HWY_MIN(kColumns, args.n - column), args.c + column);
  }
}

TileKernel Int8Row() { return {{WeightOrder::kPanels, kColumns, kGroup, 1, 0}, 1, Row}; }

#else

TileKernel Int8Row() { return {}; }

#endif

}  // namespace arn::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace arn::cpu {

HWY_EXPORT(Int8Row);
TileKernel ChooseInt8Row() {
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  return HWY_DYNAMIC_DISPATCH(Int8Row)();
}

}  // namespace arn::cpu
#endif
