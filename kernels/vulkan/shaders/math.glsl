// a / b correctly rounded: driver division may be less accurate, and division by a constant may
// become a multiplication.
float divided(float a, float b) {
  precise float q = a / b;
  precise float rest = fma(-q, b, a);
  precise float better = q + rest / b;
  return better == better ? better : q;  // a quotient that is infinite has no rest
}

// e^x, tanh and erf with the same steps as kernels/math/exp_f32.h, tanh_f32.h and erf_f32.h: the error
// bounds of driver built-ins exceed the allowed difference between backends.
const float kExpMin = -87.3365, kExpMax = 88.37;

float exp_f32(float x) {
  // Explicit rounding: compilers remove the addition and subtraction of a large constant.
  float limited = min(x, kExpMax), n = roundEven(limited * 1.44269504088896341);
  precise float r = (limited - n * 0.693359375) - n * -2.12194440e-4;
  float p = 1.9875691500e-4;
  p = p * r + 1.3981999507e-3;
  p = p * r + 8.3334519073e-3;
  p = p * r + 4.1665795894e-2;
  p = p * r + 1.6666665459e-1;
  p = p * r + 5.0000001201e-1;
  p = (p * r) * r + r + 1.0;
  float power = uintBitsToFloat(uint(int(max(n, -126.0)) + 127) << 23);
  return x >= kExpMin ? p * power : 0.0;
}

float tanh_f32(float x) {
  float size = abs(x), square = x * x;
  float p = -5.70498872745e-3;
  p = p * square + 2.06390887954e-2;
  p = p * square - 5.37397155531e-2;
  p = p * square + 1.33314422036e-1;
  p = p * square - 3.33332819422e-1;
  float large = 1.0 - 2.0 / (exp_f32(2.0 * size) + 1.0);
  return size < 0.625 ? (p * square) * x + x : x < 0.0 ? -large : large;
}

const float kErfSmall[7] = float[](7.853861353153693e-5, -8.010193625184903e-4,
    5.188327685732524e-3, -2.685381193529856e-2, 1.128358514861418e-1, -3.761262582423300e-1,
    1.128379165726710e+0);
const float kErfMiddle[9] = float[](2.326819970068386e-2, -1.387039388740657e-1,
    3.687424674597105e-1, -5.824733027278666e-1, 6.210004621745983e-1, -4.944515323274145e-1,
    3.404879937665872e-1, -2.741127028184656e-1, 5.638259427386472e-1);
const float kErfLarge[8] = float[](-1.047766399936249e+1, 1.297719955372516e+1,
    -7.495518717768503e+0, 2.921019019210786e+0, -1.015265279202700e+0, 4.218463358204948e-1,
    -2.820767439740514e-1, 5.641895067754075e-1);

float erf_f32(float x) {
  float size = abs(x), square = x * x;
  float small = kErfSmall[0], middle = kErfMiddle[0], large = kErfLarge[0];
  float q = 1.0 / max(size, 1.0), y = q * q;
  [[unroll]] for (int i = 1; i < 7; ++i) small = small * square + kErfSmall[i];
  [[unroll]] for (int i = 1; i < 9; ++i) middle = middle * y + kErfMiddle[i];
  [[unroll]] for (int i = 1; i < 8; ++i) large = large * y + kErfLarge[i];
  float erf = 1.0 - exp_f32(-square) * q * (size < 2.0 ? middle : large);
  return size < 1.0 ? x * small : x < 0.0 ? -erf : erf;
}

// log(1 + e^x), with the same steps as kernels/cpu/simd/softplus-inl.h.
const float kLog1p[9] = float[](7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1,
    -1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1,
    3.3333331174e-1);

float softplus_f32(float x) {
  float y = exp_f32(-abs(x));
  bool is_large = y > 0.41421356;
  float f = is_large ? y * 0.5 - 0.5 : y, square = f * f, p = kLog1p[0];
  [[unroll]] for (int i = 1; i < 9; ++i) p = p * f + kLog1p[i];
  float log1p = (p * f * square - 0.5 * square) + f;
  return max(x, 0.0) + (is_large ? log1p + 0.69314718055994531 : log1p);
}

// softcap * tanh(x / softcap), or x if softcap is 0.
float softcapped(float x, float softcap) {
  return softcap == 0.0 ? x : softcap * tanh_f32(x / softcap);
}

// Same steps as kernels/cpu/simd/activations.cc.
float mish_f32(float x) {
  float e = exp_f32(-abs(x));
  float above = x < 0.0 ? e * (e + 2.0) : 1.0 + 2.0 * e, rest = x < 0.0 ? 2.0 : 2.0 * e * e;
  return x * (above / (above + rest));
}

#include "../../contract/activation_list.h"
#define ARN_NUMBER(ENUMERATOR, VALUE, NAME) const uint ENUMERATOR = VALUE;
ARN_ACTIVATIONS(ARN_NUMBER)
#undef ARN_NUMBER

// One function per activation of the list: a missing one does not compile.
float activate_silu(float x) { return divided(x, 1.0 + exp_f32(-x)); }
float activate_gelu_tanh(float x) {
  return 0.5 * x * (1.0 + tanh_f32(0.7978845608 * (x + 0.044715 * x * x * x)));
}
float activate_gelu(float x) { return 0.5 * x * (1.0 + erf_f32(x * 0.7071067812)); }
// Not a function of the gate alone: gated(). CheckProgram refuses it elsewhere.
float activate_clamped_swiglu(float x) { return uintBitsToFloat(0x7fc00000u); }
float activate_xielu(float x) { return uintBitsToFloat(0x7fc00000u); }  // needs parameters
float activate_relu(float x) { return max(x, 0.0); }
float activate_relu_squared(float x) {
  float positive = max(x, 0.0);
  return positive * positive;
}
float activate_quick_gelu(float x) { return divided(x, 1.0 + exp_f32(-1.702 * x)); }
float activate_tanh(float x) { return tanh_f32(x); }
float activate_sigmoid(float x) { return divided(1.0, 1.0 + exp_f32(-x)); }
float activate_mish(float x) { return mish_f32(x); }

// Returns NaN for a number outside the list.
float activated(uint activation, float x) {
#define ARN_CASE(ENUMERATOR, VALUE, NAME) \
  case VALUE: return activate_##NAME(x);
  switch (activation) { ARN_ACTIVATIONS(ARN_CASE) }
#undef ARN_CASE
  return uintBitsToFloat(0x7fc00000u);
}

// A gated element. up: 1 if nothing is gated; limit: of kClampedSwiglu.
float gated(uint activation, float gate, float up, float limit) {
  if (activation != kClampedSwiglu) return activated(activation, gate) * up;
  gate = min(gate, limit);
  up = clamp(up, -limit, limit);
  return gate / (1.0 + exp_f32(-1.702 * gate)) * (up + 1.0);
}

// Nearest f16, ties to even, in the low 16 bits.
uint f16_from_f32(float x) {
  uint bits = floatBitsToUint(x), sign = bits >> 16 & 0x8000u, size = bits & 0x7fffffffu;
  if (size >= 0x7f800000u) return sign | (size > 0x7f800000u ? 0x7e00u : 0x7c00u);
  if (size >= 0x477ff000u) return sign | 0x7c00u;
  if (size < 0x38800000u) {
    // Subnormal: steps of 2^-24.
    uint exponent = size >> 23;
    if (exponent < 102u) return sign;
    uint mantissa = (size & 0x7fffffu) | 0x800000u, shift = 126u - exponent;
    uint value = mantissa >> shift, tie = 1u << (shift - 1u);
    uint rest = mantissa & ((1u << shift) - 1u);
    return sign | (value + (rest > tie || (rest == tie && (value & 1u) == 1u) ? 1u : 0u));
  }
  return sign | ((size - 0x38000000u + 0xfffu + (size >> 13 & 1u)) >> 13);
}
