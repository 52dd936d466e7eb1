// A table of replacements of characters, as SentencePiece compiles it ("precompiled_charsmap"), in
// place:
//   u32 bytes of the tree, the tree (an array of u32, a double array of Darts-clone), the
//   replacements: texts, each with a NUL behind it
// In a unit of the tree bits 10..30 shifted by 8 * bit 9 are the offset to the children, bit 8 says
// that a value is there, bits 0..7 and 31 are the label; in a value's unit bits 0..30 are where the
// replacement begins.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/base/diag.h"
#include "platform/base/span.h"
#include "platform/base/status.h"

namespace arn {

namespace fbs {
struct Segment;
}

class Charsmap {
 public:
  // `longest`: see Run. Checks what looking up relies on.
  Status Init(const fbs::Segment* segment, Span<const std::byte> segments, bool longest,
              Diag* diag);

  // How many bytes U+FFFD becomes; *is_kept: it stays what it is.
  size_t ReplacementBytes(bool* is_kept) const;

  // Replaces into `buffer`; *out lies there. kBufferTooSmall when that is not enough. `text` is
  // valid UTF-8. Linear in the text.
  // As Hugging Face tokenizers has it: a grapheme cluster of less than 6 bytes is replaced by what
  // the shortest of its beginnings in the table becomes, or else every character by itself. As
  // SentencePiece has it (`longest`): at every place the longest text of the table.
  Status Run(StringView text, Span<char> buffer, StringView* out) const;

 private:
  // Whether some beginning of [p, end) is in the table; *bytes is its length.
  bool Find(const char* p, const char* end, bool longest, StringView* replacement,
            size_t* bytes) const;
  bool ReplacementAt(uint32_t at, StringView* replacement) const;
  bool IsPlain(const char* p, const char* end) const;

  const uint32_t* units_ = nullptr;
  size_t n_units_ = 0;
  StringView replacements_;
  bool longest_ = false;
  bool begins_text_[128] = {};  // an ASCII character that some text of the table begins with
};

}  // namespace arn
