// Normalisers that map single characters.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/base/span.h"
#include "runtime/text/text_writer.h"

namespace arn {

namespace fbs {
enum class NormalizerKind : uint8_t;
}

// Maps each character of `text` (valid UTF-8); writes at most twice its bytes. `kind` is Lowercase,
// StripAccents, StripNonspacing, CleanText, SpaceIdeographs or Nmt.
void MapCharacters(fbs::NormalizerKind kind, StringView text, TextWriter* writer);

// Strips white space, or repeated `what` if not empty, from the start (`left`) and the end
// (`right`).
StringView StripEnds(StringView text, StringView what, bool left, bool right);

}  // namespace arn
