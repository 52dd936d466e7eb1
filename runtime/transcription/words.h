// Joins the tokens of a segment into words: transformers' _combine_tokens_into_words
// (models/whisper/tokenization_whisper.py).
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/base/span.h"

namespace arn {

// Views are of the segment: bytes of its text, and some of its ids.
struct Word {
  double start_s = 0.0;
  double end_s = 0.0;
  uint32_t offset = 0, bytes = 0;
  uint32_t first_id = 0, n_ids = 0;
};

// True for languages whose words are written without spaces between them ("zh").
bool HasNoSpaces(StringView language);

// Joins pieces of a text, each of whole characters and one behind the other, to words, in place,
// and returns their number. A piece with a space in front or of punctuation begins a word, if the
// language has spaces; then punctuation goes to the word that it belongs to. Sets no times.
size_t JoinWords(StringView text, bool has_spaces, Span<Word> pieces);

}  // namespace arn
