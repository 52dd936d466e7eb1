#include <cmath>
#include <cstring>

#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/simd/activations.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep

#include "kernels/cpu/simd/erf-inl.h"
#include "kernels/cpu/simd/exp-inl.h"
#include "kernels/cpu/simd/tanh-inl.h"

HWY_BEFORE_NAMESPACE();
namespace arn::cpu::HWY_NAMESPACE {

// Relative error below 2^-21 (tested); 0 if e^-x overflows f32.
struct Silu {
  template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
  HWY_INLINE V operator()(D d, V x) const {
    namespace hn = hwy::HWY_NAMESPACE;
    return hn::Div(x, hn::Add(hn::Set(d, 1.0f), VecExp(d, hn::Neg(x))));
  }
};

// Errors of GeluTanh and Gelu: those of tanh and erf, times |x|.
struct GeluTanh {
  template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
  HWY_INLINE V operator()(D d, V x) const {
    namespace hn = hwy::HWY_NAMESPACE;
    const V cube = hn::Mul(hn::Mul(x, x), x);
    const V inner =
        hn::Mul(hn::Set(d, 0.797884560802865f), hn::MulAdd(hn::Set(d, 0.044715f), cube, x));
    const V half = hn::Mul(hn::Set(d, 0.5f), x);
    return hn::MulAdd(half, VecTanh(d, inner), half);
  }
};

struct Gelu {
  template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
  HWY_INLINE V operator()(D d, V x) const {
    namespace hn = hwy::HWY_NAMESPACE;
    const V half = hn::Mul(hn::Set(d, 0.5f), x);
    return hn::MulAdd(half, VecErf(d, hn::Mul(x, hn::Set(d, 0.707106781186548f))), half);
  }
};

struct Relu {
  template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
  HWY_INLINE V operator()(D d, V x) const {
    return hwy::HWY_NAMESPACE::Max(x, hwy::HWY_NAMESPACE::Zero(d));
  }
};

struct ReluSquared {
  template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
  HWY_INLINE V operator()(D d, V x) const {
    const V y = Relu()(d, x);
    return hwy::HWY_NAMESPACE::Mul(y, y);
  }
};

// numerator / (1 + e^(factor x)), numerator x or 1: SiLU, quick GELU and the logistic function.
struct Logistic {
  template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
  HWY_INLINE V operator()(D d, V x) const {
    namespace hn = hwy::HWY_NAMESPACE;
    const V one = hn::Set(d, 1.0f);
    const V e = VecExp(d, hn::Mul(x, hn::Set(d, factor)));
    return hn::Div(has_x ? x : one, hn::Add(one, e));
  }
  float factor;
  bool has_x;
};

struct Tanh {
  template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
  HWY_INLINE V operator()(D d, V x) const {
    return VecTanh(d, x);
  }
};

// tanh(log(1 + e^x)) as a quotient of powers of e^-|x|: no overflow, and no cancellation for large
// negative x.
struct Mish {
  template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
  HWY_INLINE V operator()(D d, V x) const {
    namespace hn = hwy::HWY_NAMESPACE;
    const V one = hn::Set(d, 1.0f), two = hn::Set(d, 2.0f);
    const V e = VecExp(d, hn::Neg(hn::Abs(x)));
    const auto is_negative = hn::Lt(x, hn::Zero(d));
    // e^x (e^x + 2) / (e^x (e^x + 2) + 2); both parts times e^-2x if x >= 0.
    const V above =
        hn::IfThenElse(is_negative, hn::Mul(e, hn::Add(e, two)), hn::MulAdd(two, e, one));
    const V rest = hn::IfThenElse(is_negative, two, hn::Mul(two, hn::Mul(e, e)));
    return hn::Mul(x, hn::Div(above, hn::Add(above, rest)));
  }
};

// Makes a gated function from a function of the gate.
template <class Function>
struct TimesUp {
  template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
  HWY_INLINE V operator()(D d, V gate, V up) const {
    return hwy::HWY_NAMESPACE::Mul(Function()(d, gate), up);
  }
};

struct ClampedSwiglu {
  template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
  HWY_INLINE V operator()(D d, V gate, V up) const {
    namespace hn = hwy::HWY_NAMESPACE;
    const V most = hn::Set(d, limit), one = hn::Set(d, 1.0f);
    const V g = hn::Min(gate, most), u = hn::Max(hn::Neg(most), hn::Min(up, most));
    const V e = VecExp(d, hn::Mul(g, hn::Set(d, -1.702f)));
    return hn::Mul(hn::Div(g, hn::Add(one, e)), hn::Add(u, one));
  }
  float limit;
};

template <class Function>
HWY_INLINE void GatedRow(Function f, const float* in, size_t n, float* out) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  const float* up = in + n;
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(f(d, hn::LoadU(d, in + i), hn::LoadU(d, up + i)), d, out + i);
  }
  if (i < n) {
    const size_t rest = n - i;
    const auto y = f(d, hn::LoadN(d, in + i, rest), hn::LoadN(d, up + i, rest));
    hn::StoreN(y, d, out + i, rest);
  }
}

template <class Function>
HWY_INLINE void PlainRow(Function f, float* x, size_t n) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  for (size_t i = 0; i < n; i += lanes) {
    hn::StoreN(f(d, hn::LoadN(d, x + i, n - i)), d, x + i, n - i);
  }
}

HWY_NOINLINE void PlainLogistic(Logistic f, float* x, size_t n) { PlainRow(f, x, n); }

// The alphas after their softplus.
struct Xielu {
  template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
  HWY_INLINE V operator()(D d, V x) const {
    namespace hn = hwy::HWY_NAMESPACE;
    const V above = hn::Mul(hn::Mul(hn::Set(d, alpha_p), x), x);
    const V e = VecExp(d, hn::Min(x, hn::Set(d, epsilon)));
    const V below = hn::Mul(hn::Sub(hn::Sub(e, hn::Set(d, 1.0f)), x), hn::Set(d, alpha_n));
    const V curve = hn::IfThenElse(hn::Gt(x, hn::Zero(d)), above, below);
    return hn::MulAdd(hn::Set(d, beta), x, curve);
  }
  float alpha_p, alpha_n, beta, epsilon;
};

Xielu XieluOf(const float* parameters) {
  const auto softplus = [](float x) { return std::log1p(std::exp(x)); };
  return {softplus(parameters[0]), parameters[2] + softplus(parameters[1]), parameters[2],
          parameters[3]};
}

void Act(float* x, uint32_t n, Activation activation, const float* parameters) {
  switch (activation) {
    case Activation::kSilu: PlainLogistic({-1.0f, true}, x, n); return;
    case Activation::kGeluTanh: PlainRow(GeluTanh(), x, n); return;
    case Activation::kGelu: PlainRow(Gelu(), x, n); return;
    case Activation::kClampedSwiglu: return;  // rejected by CheckProgram
    case Activation::kRelu: PlainRow(Relu(), x, n); return;
    case Activation::kReluSquared: PlainRow(ReluSquared(), x, n); return;
    case Activation::kQuickGelu: PlainLogistic({-1.702f, true}, x, n); return;
    case Activation::kTanh: PlainRow(Tanh(), x, n); return;
    case Activation::kSigmoid: PlainLogistic({-1.0f, false}, x, n); return;
    case Activation::kMish: PlainRow(Mish(), x, n); return;
    case Activation::kXielu: PlainRow(XieluOf(parameters), x, n); return;
  }
}

// Rarely used gates run in a pass of their own: a fused loop for each would take kilobytes of code.
void GatedActInTwoPasses(const float* in, uint32_t n, Activation activation, float* out) {
  std::memmove(out, in, n * sizeof *out);
  Act(out, n, activation, nullptr);
  for (uint32_t i = 0; i < n; ++i) out[i] *= in[n + i];
}

void GatedAct(const float* in, uint32_t n, Activation activation, float limit, float* out) {
  switch (activation) {
    case Activation::kSilu: GatedRow(TimesUp<Silu>(), in, n, out); return;
    case Activation::kGeluTanh: GatedRow(TimesUp<GeluTanh>(), in, n, out); return;
    case Activation::kClampedSwiglu: GatedRow(ClampedSwiglu{limit}, in, n, out); return;
    case Activation::kGelu:
    case Activation::kRelu:
    case Activation::kReluSquared:
    case Activation::kQuickGelu:
    case Activation::kTanh:
    case Activation::kSigmoid:
    case Activation::kMish: GatedActInTwoPasses(in, n, activation, out); return;
    case Activation::kXielu: return;  // rejected by CheckProgram
  }
}

void ScaleRow(float scale, uint32_t n, float* x) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  const auto factor = Logistic{-1.0f, false}(d, hn::Set(d, scale));
  for (size_t i = 0; i < n; i += lanes) {
    hn::StoreN(hn::Mul(factor, hn::LoadN(d, x + i, n - i)), d, x + i, n - i);
  }
}

void Multiply(const float* by, float scale, uint32_t n, float* x) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  for (size_t i = 0; i < n; i += lanes) {
    auto factor = hn::Set(d, scale);
    if (by != nullptr) factor = hn::Mul(factor, hn::LoadN(d, by + i, n - i));
    hn::StoreN(hn::Mul(factor, hn::LoadN(d, x + i, n - i)), d, x + i, n - i);
  }
}

void Softcap(float* x, uint32_t n, float factor, float softcap) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  const auto scale = hn::Set(d, factor), cap = hn::Set(d, softcap);
  for (size_t i = 0; i < n; i += lanes) {
    auto y = hn::Mul(hn::LoadN(d, x + i, n - i), scale);
    if (softcap != 0.0f) y = hn::Mul(cap, VecTanh(d, hn::Div(y, cap)));
    hn::StoreN(y, d, x + i, n - i);
  }
}

void AddRow(const float* x, uint32_t n, float* out) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(hn::Add(hn::LoadU(d, out + i), hn::LoadU(d, x + i)), d, out + i);
  }
  if (i == n) return;
  const size_t rest = n - i;
  hn::StoreN(hn::Add(hn::LoadN(d, out + i, rest), hn::LoadN(d, x + i, rest)), d, out + i, rest);
}

}  // namespace arn::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace arn::cpu {

HWY_EXPORT(GatedAct);
HWY_EXPORT(Act);
HWY_EXPORT(ScaleRow);
HWY_EXPORT(Multiply);
HWY_EXPORT(Softcap);
HWY_EXPORT(AddRow);
GatedActFn ChooseGatedAct() { return HWY_DYNAMIC_POINTER(GatedAct); }
ActFn ChooseAct() { return HWY_DYNAMIC_POINTER(Act); }
MultiplyFn ChooseMultiply() { return HWY_DYNAMIC_POINTER(Multiply); }
ScaleRowFn ChooseScaleRow() { return HWY_DYNAMIC_POINTER(ScaleRow); }
SoftcapFn ChooseSoftcap() { return HWY_DYNAMIC_POINTER(Softcap); }
AddRowFn ChooseAddRow() { return HWY_DYNAMIC_POINTER(AddRow); }

}  // namespace arn::cpu
#endif
