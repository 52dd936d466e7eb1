// Reads FLAC files (RFC 9639), with libFLAC.
#pragma once

#include <string>
#include <string_view>

#include "tools/arenite/sound.h"

namespace arn::tool {

// `bytes`: a whole file. Throws Error that begins with `name` and says what is wrong with the file:
// damage anywhere, a checksum that differs, or more samples than kMostFlacSamples and
// kMostFlacSamplesPerByte allow, which only files made for it and long silence have.
Sound ReadFlac(std::string_view bytes, const std::string& name);

inline constexpr size_t kMostFlacSamples = size_t{1} << 22;
inline constexpr size_t kMostFlacSamplesPerByte = 16;

}  // namespace arn::tool
