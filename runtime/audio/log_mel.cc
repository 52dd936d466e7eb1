#include "runtime/audio/log_mel.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace arn {
namespace {

constexpr double kTwoPi = 6.283185307179586476925;
constexpr double kMaxHz = 8000.0;
constexpr float kLeastEnergy = 1e-10f;

// Slaney's mel scale (Auditory Toolbox, 1998): linear below 1 kHz, logarithmic above.
constexpr double kHzPerMel = 200.0 / 3.0;
constexpr double kLinearHz = 1000.0;
constexpr double kLinearMels = kLinearHz / kHzPerMel;
constexpr double kLogStep = 1.8562979903656263 / 27.0;  // ln 6.4 in 27 steps

double MelOf(double hz) {
  return hz < kLinearHz ? hz / kHzPerMel : kLinearMels + std::log(hz / kLinearHz) / kLogStep;
}
double HzOf(double mel) {
  return mel < kLinearMels ? mel * kHzPerMel : kLinearHz * std::exp(kLogStep * (mel - kLinearMels));
}

}  // namespace

size_t FindBadSample(Span<const float> pcm) {
  size_t i = 0;
  while (i < pcm.size() && std::isfinite(pcm[i])) ++i;
  return i;
}

LogMel::LogMel(uint32_t n_mels) : n_mels_(n_mels) {
  for (uint32_t i = 0; i < Dft::kSize; ++i) {
    window_[i] = static_cast<float>(0.5 - 0.5 * std::cos(kTwoPi * i / Dft::kSize));
  }
  const auto corner = [n_mels](uint32_t i) { return HzOf(MelOf(kMaxHz) * i / (n_mels + 1)); };
  // Each triangle has the area of a band one Hertz wide.
  const auto height = [&](uint32_t mel) { return 2.0 / (corner(mel + 2) - corner(mel)); };
  uint32_t mel = 0;
  for (uint32_t bin = 0; bin < Dft::kBins; ++bin) {
    const double hz = kMaxHz * bin / (Dft::kBins - 1);
    while (mel < n_mels && hz >= corner(mel + 1)) ++mel;
    const double place = (hz - corner(mel)) / (corner(mel + 1) - corner(mel));
    rising_[bin] = mel;
    rise_[bin] = mel < n_mels ? static_cast<float>(place * height(mel)) : 0.0f;
    fall_[bin] = mel > 0 ? static_cast<float>(std::max(0.0, 1.0 - place) * height(mel - 1)) : 0.0f;
  }
}

void LogMel::Window(const PaddedAudio& audio, uint64_t frame, uint32_t lane) {
  const auto size = static_cast<int64_t>(audio.pcm.size());
  const auto padded = static_cast<int64_t>(audio.n_padded);
  const int64_t first = static_cast<int64_t>(frame * kHopSamples) - Dft::kSize / 2;
  for (uint32_t i = 0; i < Dft::kSize; ++i) {
    int64_t at = first + i;
    if (at < 0) at = -at;
    if (at >= padded) at = 2 * padded - 2 - at;
    *dft_.Sample(i, lane) = at < size ? window_[i] * audio.pcm[static_cast<size_t>(at)] : 0.0f;
  }
}

void LogMel::AddToBands(uint32_t lane, float* bands) const {
  for (uint32_t bin = 0; bin < Dft::kBins; ++bin) {
    const float power = power_[bin * Dft::kLanes + lane];
    const uint32_t mel = rising_[bin];
    if (mel < n_mels_) bands[mel] += rise_[bin] * power;
    if (mel > 0) bands[mel - 1] += fall_[bin] * power;
  }
}

float LogMel::Energies(const PaddedAudio& audio, uint64_t first, uint64_t n, float* out) {
  if (n == 0) return 0.0f;
  std::memset(out, 0, static_cast<size_t>(n) * n_mels_ * sizeof(float));
  // Frames that begin behind the last sample are silent, unless the end's reflection reaches it.
  const uint64_t end = audio.pcm.size() + Dft::kSize >= audio.n_padded
                           ? audio.n_frames()
                           : (audio.pcm.size() + Dft::kSize / 2) / kHopSamples + 1;
  const uint64_t n_heard = end <= first ? 0 : std::min(n, end - first);
  for (uint64_t f = 0; f < n_heard; f += Dft::kLanes) {
    const auto n_now = static_cast<uint32_t>(std::min<uint64_t>(n_heard - f, Dft::kLanes));
    // Lanes without a frame repeat the last one: what a stage left there might be no number.
    for (uint32_t lane = 0; lane < Dft::kLanes; ++lane) {
      Window(audio, first + f + std::min(lane, n_now - 1), lane);
    }
    dft_.Run(power_);
    for (uint32_t lane = 0; lane < n_now; ++lane) AddToBands(lane, out + (f + lane) * n_mels_);
  }
  float largest = 0.0f;
  for (uint64_t i = 0; i < n_heard * n_mels_; ++i) largest = std::max(largest, out[i]);
  return largest;
}

void LogMel::ToFeatures(float largest, Span<float> energies) {
  const float least = std::log10(std::max(largest, kLeastEnergy)) - 8.0f;
  for (float& e : energies) {
    e = (std::max(std::log10(std::max(e, kLeastEnergy)), least) + 4.0f) / 4.0f;
  }
}

}  // namespace arn
