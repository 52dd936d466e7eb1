// Alphabet of byte-level tokenizers (bytes_to_unicode): printable Latin-1 characters stand for
// themselves; the other bytes map to the characters from U+0100 on, in order.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/base/span.h"

namespace arn {

// Maximum UTF-8 bytes of a character of the alphabet.
inline constexpr size_t kAlphabetBytes = 2;

uint32_t CharacterOfByte(uint8_t byte);

// Decodes text in the alphabet to bytes; *size is their number. Returns false if a character is not
// in the alphabet. REQUIRES: text is valid UTF-8; `out` is at least as large and may alias it.
bool BytesOfAlphabet(StringView text, char* out, size_t* size);

}  // namespace arn
