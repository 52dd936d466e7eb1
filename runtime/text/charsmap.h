// Character replacement table compiled by SentencePiece ("precompiled_charsmap"), used in place:
//   u32 bytes of the trie, the trie (an array of u32, a double array of Darts-clone), the
//   replacements: NUL-terminated texts
// In a trie unit bits 10..30 shifted by 8 * bit 9 are the offset to the children, bit 8 marks a
// value, bits 0..7 and 31 are the label; in a value unit bits 0..30 are the position of the
// replacement.
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
  // `longest`: see Run. Checks all bounds that lookups rely on.
  Status Init(const fbs::Segment* segment, Span<const std::byte> segments, bool longest,
              Diag* diag);

  // Returns the size of the replacement of U+FFFD; *is_kept: it is unchanged.
  size_t ReplacementBytes(bool* is_kept) const;

  // Replaces into `buffer`; *out points into it. kBufferTooSmall if it does not fit. REQUIRES:
  // `text` is valid UTF-8. Linear in the text. As in Hugging Face tokenizers: replaces a grapheme
  // cluster of less than 6 bytes by its shortest prefix in the table, else each character by
  // itself. As in SentencePiece (`longest`): the longest match at each position.
  Status Run(StringView text, Span<char> buffer, StringView* out) const;

 private:
  // Finds a prefix of [p, end) in the table; *bytes is its length.
  bool Find(const char* p, const char* end, bool longest, StringView* replacement,
            size_t* bytes) const;
  bool ReplacementAt(uint32_t at, StringView* replacement) const;
  bool IsPlain(const char* p, const char* end) const;

  const uint32_t* units_ = nullptr;
  size_t n_units_ = 0;
  StringView replacements_;
  bool longest_ = false;
  bool begins_text_[128] = {};  // ASCII characters that begin an entry of the table
};

}  // namespace arn
