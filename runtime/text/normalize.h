// The normalizers: what happens to text before it is split.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/base/arena.h"
#include "platform/base/diag.h"
#include "platform/base/span.h"
#include "platform/base/status.h"
#include "runtime/text/charsmap.h"
#include "runtime/text/regex.h"

namespace arn {

namespace fbs {
struct Tokenizer;
enum class NormalizerKind : uint8_t;
}  // namespace fbs

// How much text can grow: n bytes become at most (n + added) * factor. Saturates.
struct Growth {
  uint64_t added = 0;
  uint64_t factor = 1;
  uint64_t Bound(uint64_t n) const;
};

class NormalizerChain {
 public:
  Status Init(const fbs::Tokenizer& table, Span<const std::byte> segments, Arena* arena,
              Diag* diag);
  static uint64_t ArenaBytes(const fbs::Tokenizer& table);
  // growth() before Init.
  static Growth GrowthOf(const fbs::Tokenizer& table);

  bool is_empty() const { return n_steps_ == 0; }
  bool uses_regex() const { return uses_regex_; }
  Growth growth() const { return growth_; }
  // Like growth(), from bytes of anything, whose invalid parts become U+FFFD first.
  Growth growth_of_anything() const;
  // When the only step that may lengthen a text puts a literal in the place of another one: both,
  // else empty views.
  void SoleReplacement(StringView* pattern, StringView* content) const;
  bool has_growing_steps() const { return n_growing_ > 0; }

  // What Run takes from its scratch, for a text that was text_bytes of anything.
  uint64_t ScratchBytes(uint64_t text_bytes) const;
  // *out lies in `text` or in one of the buffers; growth().Bound(text.size) bytes each are enough,
  // with less the status may be kBufferTooSmall. `text` is valid UTF-8 and outside of the buffers.
  // `matcher` may be null when uses_regex() is false. *keeps_start: the beginning of the text was
  // not taken away.
  Status Run(StringView text, Span<char> buffer_a, Span<char> buffer_b, RegexMatcher* matcher,
             Arena* scratch, StringView* out, bool* keeps_start, Diag* diag) const;

 private:
  struct Step {
    fbs::NormalizerKind kind;
    bool is_regex;
    StringView pattern;
    StringView content;
    bool left;
    bool right;
    Charsmap charsmap;
    Regex regex;
  };
  static constexpr uint32_t kMaxSteps = 16;

  Status InitStep(uint32_t index, const fbs::Tokenizer& table, Span<const std::byte> segments,
                  Arena* arena, Diag* diag);
  void CountReplacement(const Step& step, const Growth& growth);
  static Status RunStep(const Step& step, StringView text, Span<char> target, RegexMatcher* matcher,
                        Arena* scratch, StringView* out, bool* keeps_start, Diag* diag);

  Step steps_[kMaxSteps];
  uint32_t n_steps_ = 0;
  uint32_t n_growing_ = 0;
  const Step* growing_ = nullptr;  // the last of them
  Growth growth_;
  bool uses_regex_ = false;
  bool has_form_ = false;           // a Unicode normalization form
  Growth form_input_;               // how the text may have grown before the last of them
  uint64_t replacement_bytes_ = 3;  // what U+FFFD becomes at most
  bool replacement_is_kept_ = true;
};

}  // namespace arn
