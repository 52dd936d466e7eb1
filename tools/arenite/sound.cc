#include "tools/arenite/sound.h"

#include "tools/arenite/error.h"
#include "tools/arenite/flac.h"
#include "tools/arenite/resample.h"
#include "tools/arenite/wav.h"
#include "tools/cli/format.h"

namespace arn::tool {
namespace {

Sound ReadSound(std::string_view bytes, const std::string& name) {
  const std::string_view magic = bytes.substr(0, 4);
  if (magic == "fLaC") return ReadFlac(bytes, name);
  const bool is_mp4 = bytes.size() > 8 && bytes.substr(4, 4) == "ftyp";
  if (magic == "OggS" || magic.substr(0, 3) == "ID3" || is_mp4) {
    throw Error(name + ": a compressed sound file; convert it: ffmpeg -i IN OUT.wav");
  }
  return ReadWav(bytes, name);
}

}  // namespace

std::vector<float> ReadSoundAt(uint32_t rate, std::string_view bytes, const std::string& name) {
  const Sound sound = ReadSound(bytes, name);
  if (sound.samples.empty()) throw Error(name + ": has no samples");
  if (sound.rate < kLowestRate || sound.rate > kHighestRate) {
    throw Error(cli::Format("%s: has %u samples in a second, expected %u to %u", name.c_str(),
                            sound.rate, kLowestRate, kHighestRate));
  }
  return Resample(sound.samples, sound.rate, rate);
}

}  // namespace arn::tool
