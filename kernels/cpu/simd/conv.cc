#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/simd/conv.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace arn::cpu::HWY_NAMESPACE {

// kGated: the tile has b and c. Sums run over the taps in order, for any number of rows.
template <bool kGated>
class ConvRows {
 public:
  explicit ConvRows(const ConvTile& tile) : tile_(tile) {}

  // Goes from row to row, as memory does, and not from channel to channel: the inputs of a row's
  // other taps are in the cache still.
  void Run() const {
    for (size_t t = 0; t < tile_.n_rows; ++t) RunRow(t);
    for (size_t k = 0; k + 1 < tile_.taps; ++k) {
      ForVectors([&](size_t c, auto load, auto store) HWY_ATTR {
        store(Input(tile_.n_rows + k, c, load), tile_.state.to + k * tile_.width + c);
      });
    }
  }

 private:
  using Floats = hwy::HWY_NAMESPACE::ScalableTag<float>;

  // Calls body(channel, load, store) for each vector of the tile's channels.
  template <class Body>
  HWY_INLINE void ForVectors(const Body& body) const {
    namespace hn = hwy::HWY_NAMESPACE;
    const Floats d;
    const size_t lanes = hn::Lanes(d);
    size_t c = tile_.first;
    for (; c + lanes <= tile_.last; c += lanes) {
      body(
          c, [](const float* at) HWY_ATTR { return hn::LoadU(Floats(), at); },
          [](auto v, float* at) HWY_ATTR { hn::StoreU(v, Floats(), at); });
    }
    if (c == tile_.last) return;
    const size_t n = tile_.last - c;
    body(
        c, [n](const float* at) HWY_ATTR { return hn::LoadN(Floats(), at, n); },
        [n](auto v, float* at) HWY_ATTR { hn::StoreN(v, Floats(), at, n); });
  }

  HWY_INLINE void RunRow(size_t t) const {
    namespace hn = hwy::HWY_NAMESPACE;
    ForVectors([&](size_t c, auto load, auto store) HWY_ATTR {
      auto sum = tile_.bias == nullptr ? hn::Zero(Floats()) : load(tile_.bias + c);
      for (size_t k = 0; k < tile_.taps; ++k) {
        sum = hn::MulAdd(load(tile_.weight + k * tile_.width + c), Input(t + k, c, load), sum);
      }
      if (kGated) sum = hn::Mul(sum, load(tile_.c + t * tile_.in_stride + c));
      store(sum, tile_.out + t * tile_.width + c);
    });
  }

  // Returns input i of the extended sequence: the state's inputs, then the rows.
  template <class Load>
  HWY_INLINE auto Input(size_t i, size_t c, const Load& load) const {
    namespace hn = hwy::HWY_NAMESPACE;
    const size_t kept = tile_.taps - 1;
    if (i < kept) {
      return tile_.state.from == nullptr ? hn::Zero(Floats())
                                         : load(tile_.state.from + i * tile_.width + c);
    }
    const size_t at = (i - kept) * tile_.in_stride + c;
    const auto x = load(tile_.x + at);
    return kGated ? hn::Mul(load(tile_.b + at), x) : x;
  }

  const ConvTile& tile_;
};

void Conv(const ConvTile& tile) {
  if (tile.b != nullptr) {
    ConvRows<true>(tile).Run();
  } else {
    ConvRows<false>(tile).Run();
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
