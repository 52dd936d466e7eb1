// LogMel: the log-mel spectrogram that Whisper's encoder takes, with the arithmetic of
// transformers' WhisperFeatureExtractor (feature_extraction_whisper.py, and mel_filter_bank of
// audio_utils.py).
#pragma once

#include <cstdint>

#include "platform/base/span.h"
#include "runtime/audio/dft.h"

namespace arn {

inline constexpr uint32_t kSampleRate = 16000;  // Hz
inline constexpr uint32_t kHopSamples = 160;    // samples from frame to frame: 10 ms
inline constexpr uint32_t kMaxMels = 1024;

// Samples f32 at kSampleRate, followed by zeros up to n_padded.
struct PaddedAudio {
  Span<const float> pcm;
  uint64_t n_padded = 0;  // at least pcm.size(), and kLeastSamples

  // Frame f is centred on sample f * kHopSamples. Both ends are reflected, so at least half a
  // transform is needed.
  static constexpr uint64_t kLeastSamples = Dft::kSize / 2 + 1;
  uint64_t n_frames() const { return n_padded / kHopSamples; }
};

// Returns the index of the first sample that is not finite; pcm.size(): none.
size_t FindBadSample(Span<const float> pcm);

class LogMel {
 public:
  // Computes window, filters and roots. REQUIRES: 0 < n_mels <= kMaxMels.
  explicit LogMel(uint32_t n_mels);

  // Writes the energies of mel bands at frames [first, first + n): the squared magnitude of the
  // spectrum of a Hann window of 400 samples, times Slaney's triangular filters from 0 to 8 kHz.
  // out: f32 [n, n_mels]. Returns the largest. A frame's bits do not depend on the others.
  // REQUIRES: first + n <= audio.n_frames().
  float Energies(const PaddedAudio& audio, uint64_t first, uint64_t n, float* out);
  // Turns energies e into features: with l(e) = log10(max(e, 1e-10)), max(l(e), l(largest) - 8) / 4
  // + 1. `largest`: the largest of the whole audio.
  static void ToFeatures(float largest, Span<float> energies);
  uint32_t n_mels() const { return n_mels_; }

 private:
  // Gives the windowed samples of a frame to a lane of the transform.
  void Window(const PaddedAudio& audio, uint64_t frame, uint32_t lane);
  void AddToBands(uint32_t lane, float* bands) const;

  uint32_t n_mels_;
  Dft dft_;
  float window_[Dft::kSize];
  // A bin lies between two of the n_mels + 2 corners of the filters: it is part of the rising side
  // of filter `rising_[bin]` and of the falling side of the one before.
  uint32_t rising_[Dft::kBins];
  float rise_[Dft::kBins];  // weights, 0 where there is no such filter
  float fall_[Dft::kBins];
  float power_[Dft::kBins * Dft::kLanes];
};

}  // namespace arn
