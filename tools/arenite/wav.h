// Reads WAV files (RIFF/WAVE): PCM of 8, 16, 24 and 32 bits, and floats of 32 and 64.
#pragma once

#include <string>
#include <string_view>

#include "tools/arenite/sound.h"

namespace arn::tool {

// `bytes`: a whole file. A data chunk without a size (2^32 - 1, as programs write that cannot seek)
// ends with the file. Throws Error that begins with `name` and says what is wrong with the file.
Sound ReadWav(std::string_view bytes, const std::string& name);

}  // namespace arn::tool
