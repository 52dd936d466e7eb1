// Where the character tables of Hugging Face tokenizers 0.23.1 differ from utf8proc's: they are of
// older versions of Unicode, each of its own. Found by asking both about every code point.
#pragma once

#include <cstddef>
#include <cstdint>

namespace arn {

enum class CharacterTable : uint8_t {
  kPunctuation,
  kMark,        // of StripAccents
  kNonspacing,  // of BertNormalizer
  kControl,
  kWord,
  kCanonical,   // decompositions
  kCompatible,  // decompositions, the canonical ones among them
};

// Whether the reference says the opposite of what utf8proc says of the character; for the
// decompositions: whether the character has one, and none there.
bool IsOtherwiseInReference(CharacterTable table, uint32_t c);

}  // namespace arn
