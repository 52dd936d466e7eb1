// Residual streams and activation sparsity: kernels of the backends on the host, for one row.
#pragma once

#include <cstdint>

#include "kernels/contract/step.h"

namespace arn {

// False in libraries without ARENITE_STREAMS: bundles that need these kernels are refused.
#ifdef ARENITE_NO_STREAMS
inline constexpr bool kHasStreams = false;
#else
inline constexpr bool kHasStreams = true;
#endif

// Arrays are dense f32. x and the streams [width].
struct MixStreamsArgs {
  StreamRule rule;
  uint32_t n_streams, active, width;
  const float* coefs;  // kPredict: [n_streams, n_streams]; kCorrect: [n_streams]; else null
  const float* scale;  // [width], or null
  float* streams[kMaxStreams];
};

// Does what StreamRule says; x is Step::in (AltUp, Baykal et al., 2023, arXiv:2301.13310).
void MixStreams(const MixStreamsArgs& args, float* x);

// out[n] = x * rms(like) / sqrt(max(mean(x^2), epsilon)); x and out may be the same array.
void MatchRms(const float* x, const float* like, uint32_t n, float epsilon, float* out);

// x[n] = max(0, x - (mean(x) + deviations * std(x))), std with divisor n: the largest of normally
// distributed values (statistical top-k).
void Threshold(float deviations, uint32_t n, float* x);

}  // namespace arn
