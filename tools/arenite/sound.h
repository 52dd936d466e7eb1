// Reads sound files.
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

// Returns a whole WAV or FLAC file's samples at `rate` in a second, resampled if the file has
// another. Throws Error that begins with `name` and says what is wrong with the file.
std::vector<float> ReadSoundAt(uint32_t rate, std::string_view bytes, const std::string& name);

}  // namespace arn::tool
