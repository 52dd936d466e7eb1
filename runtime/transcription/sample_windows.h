// Cuts long audio into windows for models that write no times.
#pragma once

#include <cstddef>

#include "platform/base/span.h"

namespace arn {

// Returns where the window that begins at `begin` ends: with the audio, or after at most
// most_samples, in the middle of the quietest tenth of a second of its last quarter.
// REQUIRES: begin < pcm.size(), most_samples > 0.
size_t EndOfWindow(Span<const float> pcm, size_t begin, size_t most_samples);

}  // namespace arn
