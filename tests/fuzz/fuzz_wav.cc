// libFuzzer: a WAV file.
#include <cstddef>
#include <cstdint>

#include "tools/arenite/error.h"
#include "tools/arenite/wav.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    arn::tool::ReadWavAt(16000, {reinterpret_cast<const char*>(data), size}, "fuzz.wav");
  } catch (const arn::tool::Error&) {
    // Refused.
  }
  return 0;
}
