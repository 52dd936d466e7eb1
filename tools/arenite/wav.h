// Reads WAV files (RIFF/WAVE): PCM of 8, 16, 24 and 32 bits, and floats of 32 and 64.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace arn::tool {

struct Sound {
  uint32_t rate = 0;           // samples per second
  std::vector<float> samples;  // mono: the mean of the channels; PCM in [-1, 1)
};

// `bytes`: a whole file. A data chunk without a size (2^32 - 1, as programs write that cannot seek)
// ends with the file. Throws Error that begins with `name` and says what is wrong with the file.
Sound ReadWav(std::string_view bytes, const std::string& name);
// Returns a whole file's samples at `rate` in a second, resampled if the file has another. Throws
// Error as ReadWav does, and if there is no sample.
std::vector<float> ReadWavAt(uint32_t rate, std::string_view bytes, const std::string& name);

}  // namespace arn::tool
