// What characters are to Hugging Face tokenizers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/base/span.h"

namespace arn {

// Unicode White_Space.
bool IsWhiteSpace(uint32_t c);
// A character of words: \w of Rust's regular expressions.
bool IsWordCharacter(uint32_t c);
// Of the categories N*.
bool IsNumeric(uint32_t c);
// Of the categories P*, or an ASCII character that is neither a letter, a digit nor a control.
bool IsPunctuation(uint32_t c);
// Of the categories M*.
bool IsMark(uint32_t c);
bool IsNonspacingMark(uint32_t c);
// Of the categories Cc, Cf and Co.
bool IsControl(uint32_t c);
// Of the blocks of CJK ideographs that BERT's tokenizer takes apart.
bool IsIdeograph(uint32_t c);

// The lower case of one character, at most two of them; returns how many.
size_t ToLowercase(uint32_t c, uint32_t out[2]);

// Bytes of the extended grapheme cluster (UAX #29) that the text, valid UTF-8 and not empty, begins
// with.
size_t GraphemeBytes(StringView text);

}  // namespace arn
