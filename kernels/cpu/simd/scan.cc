#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/simd/scan.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep

#include "kernels/cpu/simd/exp-inl.h"
#include "kernels/cpu/simd/softplus-inl.h"

HWY_BEFORE_NAMESPACE();
namespace arn::cpu::HWY_NAMESPACE {

// Processes a vector of channels at a time, with its states and rates copied side by side: in the
// weights and in the slot, a channel's consecutive states are one row apart.
void Scan(const ScanTile& tile) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  HWY_ALIGN float states[kMaxScanStates * HWY_MAX_LANES_D(hn::ScalableTag<float>)];
  HWY_ALIGN float rates[kMaxScanStates * HWY_MAX_LANES_D(hn::ScalableTag<float>)];
  for (size_t c = tile.first; c < tile.last; c += lanes) {
    const size_t n = HWY_MIN(lanes, tile.last - c);
    for (size_t s = 0; s < tile.n_states; ++s) {
      const size_t at = s * tile.width + c;
      const auto before =
          tile.state.from == nullptr ? hn::Zero(d) : hn::LoadN(d, tile.state.from + at, n);
      hn::Store(before, d, states + s * lanes);
      hn::Store(hn::LoadN(d, tile.rates + at, n), d, rates + s * lanes);
    }
    const auto skip = hn::LoadN(d, tile.skip + c, n);
    for (size_t t = 0; t < tile.n_rows; ++t) {
      const size_t row = t * tile.width + c;
      const auto x = hn::LoadN(d, tile.x + row, n);
      const auto dt = VecSoftplus(d, hn::LoadN(d, tile.time_steps + row, n));
      const auto dx = hn::Mul(dt, x);
      const float* in = tile.mix + 2 * t * tile.n_states;
      const float* out = in + tile.n_states;
      auto y = hn::Mul(skip, x);
      for (size_t s = 0; s < tile.n_states; ++s) {
        const auto decay = VecExp(d, hn::Mul(dt, hn::Load(d, rates + s * lanes)));
        const auto h =
            hn::MulAdd(decay, hn::Load(d, states + s * lanes), hn::Mul(dx, hn::Set(d, in[s])));
        hn::Store(h, d, states + s * lanes);
        y = hn::MulAdd(h, hn::Set(d, out[s]), y);
      }
      hn::StoreN(y, d, tile.out + t * tile.out_stride + c, n);
    }
    for (size_t s = 0; s < tile.n_states; ++s) {
      hn::StoreN(hn::Load(d, states + s * lanes), d, tile.state.to + s * tile.width + c, n);
    }
  }
}

}  // namespace arn::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace arn::cpu {

HWY_EXPORT(Scan);
ScanFn ChooseScan() { return HWY_DYNAMIC_POINTER(Scan); }

}  // namespace arn::cpu
#endif
