#include "runtime/audio/dft.h"

#include <cmath>

namespace arn {
namespace {

constexpr double kTwoPi = 6.283185307179586476925;
constexpr uint32_t kMaxRadix = 5;

}  // namespace

Dft::Dft() {
  for (uint32_t i = 0; i < kSize; ++i) {
    cos_[i] = static_cast<float>(std::cos(kTwoPi * i / kSize));
    sin_[i] = static_cast<float>(std::sin(kTwoPi * i / kSize));
  }
}

// Stockham's autosort step (Van Loan, Computational Frameworks for the Fast Fourier Transform,
// 1992, 1.7) of radix r. `stride` transforms of length n = kComplex / stride are interleaved; with
// m = n / r, each becomes r transforms of length m:
//   out[q + stride (r p + k)] = sum_j in[q + stride (p + m j)] W^(stride k (p + m j)),
// where W = exp(-2 pi i / kComplex): twiddle factor and butterfly are one root of the table.
void Dft::Stage(uint32_t radix, uint32_t stride, uint32_t from) {
  const uint32_t m = kComplex / (stride * radix);
  const uint32_t run = stride * kLanes;
  const float* __restrict const in_re = re_[from];
  const float* __restrict const in_im = im_[from];
  float* __restrict out_re = re_[1 - from];
  float* __restrict out_im = im_[1 - from];
  for (uint32_t p = 0; p < m; ++p) {
    for (uint32_t k = 0; k < radix; ++k) {
      float c[kMaxRadix], s[kMaxRadix];
      for (uint32_t j = 0; j < radix; ++j) {
        const uint32_t root = 2 * (stride * k * (p + m * j) % kComplex);
        c[j] = cos_[root];
        s[j] = sin_[root];
      }
      for (uint32_t q = 0; q < run; q += kLanes) {
        float re[kLanes] = {}, im[kLanes] = {};
        for (uint32_t j = 0; j < radix; ++j) {
          const uint32_t at = (p + m * j) * run + q;
          for (uint32_t lane = 0; lane < kLanes; ++lane) {
            re[lane] += c[j] * in_re[at + lane] + s[j] * in_im[at + lane];
            im[lane] += c[j] * in_im[at + lane] - s[j] * in_re[at + lane];
          }
        }
        for (uint32_t lane = 0; lane < kLanes; ++lane) {
          *out_re++ = re[lane];
          *out_im++ = im[lane];
        }
      }
    }
  }
}

// Samples x[2n] + i x[2n + 1] have the transform Z = E + iO, where E and O are those of the even
// and of the odd samples: E = (Z[k] + conj Z[-k]) / 2, O = (Z[k] - conj Z[-k]) / 2i, and X[k] = E +
// exp(-2 pi i k / kSize) O.
void Dft::Run(float* power) {
  Stage(2, 1, 0);
  Stage(4, 2, 1);
  Stage(5, 8, 0);
  Stage(5, 40, 1);
  for (uint32_t k = 0; k < kBins; ++k) {
    const float* re = re_[0] + k % kComplex * kLanes;
    const float* im = im_[0] + k % kComplex * kLanes;
    const float* mirrored_re = re_[0] + (kComplex - k) % kComplex * kLanes;
    const float* mirrored_im = im_[0] + (kComplex - k) % kComplex * kLanes;
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      const float even_re = re[lane] + mirrored_re[lane];
      const float even_im = im[lane] - mirrored_im[lane];
      const float odd_re = im[lane] + mirrored_im[lane];
      const float odd_im = mirrored_re[lane] - re[lane];
      const float x_re = even_re + cos_[k] * odd_re + sin_[k] * odd_im;
      const float x_im = even_im + cos_[k] * odd_im - sin_[k] * odd_re;
      power[k * kLanes + lane] = 0.25f * (x_re * x_re + x_im * x_im);
    }
  }
}

}  // namespace arn
