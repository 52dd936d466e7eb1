// Character classes as in Hugging Face tokenizers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/base/span.h"

namespace arn {

// Unicode White_Space.
bool IsWhiteSpace(uint32_t c);
// Word character: \w of Rust's regular expressions.
bool IsWordCharacter(uint32_t c);
// Categories N*.
bool IsNumeric(uint32_t c);
// Categories P*, or an ASCII character that is neither letter, digit nor control.
bool IsPunctuation(uint32_t c);
// Categories M*.
bool IsMark(uint32_t c);
bool IsNonspacingMark(uint32_t c);
// Categories Cc, Cf and Co.
bool IsControl(uint32_t c);
// Blocks of CJK ideographs that BERT's tokenizer splits.
bool IsIdeograph(uint32_t c);

// Writes the lower case of a character, at most two; returns their number.
size_t ToLowercase(uint32_t c, uint32_t out[2]);

// Returns the bytes of the first extended grapheme cluster (UAX #29). REQUIRES: valid UTF-8, not
// empty.
size_t GraphemeBytes(StringView text);

}  // namespace arn
