#include "runtime/transcription/sample_windows.h"

#include "platform/base/arith.h"
#include "runtime/audio/log_mel.h"

namespace arn {

size_t EndOfWindow(Span<const float> pcm, size_t begin, size_t most_samples) {
  if (pcm.size() - begin <= most_samples) return pcm.size();
  constexpr size_t kBlock = kSampleRate / 10;
  const size_t end = begin + most_samples;
  size_t best = end;
  double least = 0.0;
  for (size_t at = end - most_samples / 4; at + kBlock <= end; at += kBlock) {
    double energy = 0.0;
    for (const float x : pcm.subspan(at, kBlock)) {
      energy += static_cast<double>(x) * static_cast<double>(x);
    }
    if (best != end && energy >= least) continue;
    least = energy;
    best = at + kBlock / 2;
  }
  return best;
}

}  // namespace arn
