// The normalizers that look at one character at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/base/span.h"
#include "runtime/text/text_writer.h"

namespace arn {

namespace fbs {
enum class NormalizerKind : uint8_t;
}

// Writes what the characters of `text`, valid UTF-8, become; at most twice its bytes. `kind` is
// Lowercase, StripAccents, StripNonspacing, CleanText, SpaceIdeographs or Nmt.
void MapCharacters(fbs::NormalizerKind kind, StringView text, TextWriter* writer);

// The text without white space at its start (`left`) and at its end (`right`), or without `what`
// there if that is not empty.
StringView StripEnds(StringView text, StringView what, bool left, bool right);

}  // namespace arn
