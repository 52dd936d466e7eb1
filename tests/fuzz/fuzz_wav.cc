// libFuzzer: a WAV or FLAC file.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/fuzz/fuzz_target.h"
#include "tools/arenite/error.h"
#include "tools/arenite/sound.h"

namespace {

std::vector<std::string> WavSeeds() {
  std::vector<std::string> seeds;
  for (const int bits : {8, 16, 24, 32}) {
    const std::string samples(static_cast<size_t>(bits), '\x40');
    std::string format("\x01\0\x01\0\x80\x3E\0\0\0\0\0\0", 12);
    format += static_cast<char>(bits / 8) + std::string(1, '\0') + static_cast<char>(bits);
    format += '\0';
    const auto chunk = [](const std::string& id, const std::string& data) {
      return id + static_cast<char>(data.size()) + std::string(3, '\0') + data;
    };
    seeds.push_back(chunk("RIFF", "WAVE" + chunk("fmt ", format) + chunk("data", samples)));
  }
  seeds.push_back("fLaC");
  return seeds;
}

}  // namespace

ARN_FUZZ_TARGET(wav, WavSeeds) {
  try {
    arn::tool::ReadSoundAt(16000, {reinterpret_cast<const char*>(data), size}, "fuzz");
  } catch (const arn::tool::Error&) {
    // Refused.
  }
}
