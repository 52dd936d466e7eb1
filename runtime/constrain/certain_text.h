// How much of a text that must follow can be tokenised now.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/base/span.h"
#include "runtime/constrain/token_bytes.h"

namespace arn {

// Returns the largest n such that no token begins before byte n of `text` and ends after it,
// whatever follows the text. The tokens of text[0, n) then do not depend on what follows: a
// tokenizer that joins parts has nothing to join across n. `first`: tree of the tokens that may
// begin the text; `later`: of those that may begin inside it.
size_t CertainBytes(const ByteTree& first, const ByteTree& later, Span<const uint8_t> text);

}  // namespace arn
