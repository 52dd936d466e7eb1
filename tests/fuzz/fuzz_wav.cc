// libFuzzer: a WAV or FLAC file.
#include <cstddef>
#include <cstdint>

#include "tools/arenite/error.h"
#include "tools/arenite/sound.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    arn::tool::ReadSoundAt(16000, {reinterpret_cast<const char*>(data), size}, "fuzz");
  } catch (const arn::tool::Error&) {
    // Refused.
  }
  return 0;
}
