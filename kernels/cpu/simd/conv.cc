#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/simd/conv.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace arn::cpu::HWY_NAMESPACE {

// Up to one vector of channels from c on. kGated: the tile has b and c.
template <bool kGated>
class ConvChannels {
 public:
  ConvChannels(const ConvTile& tile, size_t c, size_t n) : tile_(tile), c_(c), n_(n) {}

  void Run() const {
    namespace hn = hwy::HWY_NAMESPACE;
    const hn::ScalableTag<float> d;
    for (size_t t = 0; t < tile_.n_rows; ++t) {
      auto sum = tile_.bias == nullptr ? hn::Zero(d) : hn::LoadN(d, tile_.bias + c_, n_);
      for (size_t k = 0; k < tile_.taps; ++k) {
        sum = hn::MulAdd(hn::LoadN(d, tile_.weight + k * tile_.width + c_, n_), Input(t + k), sum);
      }
      if (kGated) sum = hn::Mul(sum, hn::LoadN(d, tile_.c + t * tile_.in_stride + c_, n_));
      hn::StoreN(sum, d, tile_.out + t * tile_.width + c_, n_);
    }
    for (size_t k = 0; k + 1 < tile_.taps; ++k) {
      hn::StoreN(Input(tile_.n_rows + k), d, tile_.state.to + k * tile_.width + c_, n_);
    }
  }

 private:
  // Returns input i of the extended sequence: the state's inputs, then the rows.
  HWY_INLINE auto Input(size_t i) const {
    namespace hn = hwy::HWY_NAMESPACE;
    const hn::ScalableTag<float> d;
    const size_t kept = tile_.taps - 1;
    if (i < kept) {
      return tile_.state.from == nullptr
                 ? hn::Zero(d)
                 : hn::LoadN(d, tile_.state.from + i * tile_.width + c_, n_);
    }
    const size_t at = (i - kept) * tile_.in_stride + c_;
    const auto x = hn::LoadN(d, tile_.x + at, n_);
    return kGated ? hn::Mul(hn::LoadN(d, tile_.b + at, n_), x) : x;
  }

  const ConvTile& tile_;
  const size_t c_, n_;
};

void Conv(const ConvTile& tile) {
  namespace hn = hwy::HWY_NAMESPACE;
  const size_t lanes = hn::Lanes(hn::ScalableTag<float>());
  for (size_t c = tile.first; c < tile.last; c += lanes) {
    const size_t n = HWY_MIN(lanes, tile.last - c);
    if (tile.b != nullptr) {
      ConvChannels<true>(tile, c, n).Run();
    } else {
      ConvChannels<false>(tile, c, n).Run();
    }
  }
}

}  // namespace arn::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace arn::cpu {

HWY_EXPORT(Conv);
ConvFn ChooseConv() { return HWY_DYNAMIC_POINTER(Conv); }

}  // namespace arn::cpu
#endif
