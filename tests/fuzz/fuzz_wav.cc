// libFuzzer: a WAV or FLAC file.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/fuzz_target.h"
#include "tools/arenite/error.h"
#include "tools/arenite/sound.h"

ARN_FUZZ_TARGET(wav, nullptr) {
  try {
    arn::tool::ReadSoundAt(16000, {reinterpret_cast<const char*>(data), size}, "fuzz");
  } catch (const arn::tool::Error&) {
    // Refused.
  }
}
