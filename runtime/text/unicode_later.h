// Differences between utf8proc's tables and those of Hugging Face tokenizers 0.23.1, which use
// several older Unicode versions. Found by comparing both for every code point.
#pragma once

#include <cstddef>
#include <cstdint>

namespace arn {

enum class CharacterTable : uint8_t {
  kPunctuation,
  kMark,        // for StripAccents
  kNonspacing,  // for BertNormalizer
  kControl,
  kWord,
  kCanonical,   // decompositions
  kCompatible,  // decompositions, canonical ones included
};

// True if the reference disagrees with utf8proc about the character; for decompositions: the
// character has one only in utf8proc.
bool IsOtherwiseInReference(CharacterTable table, uint32_t c);

}  // namespace arn
