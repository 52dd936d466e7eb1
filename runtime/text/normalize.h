// Normalises text before it is split.
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

// Bound of text growth: n bytes become at most (n + added) * factor. Saturates.
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
  // As growth() for arbitrary bytes, whose invalid parts first become U+FFFD.
  Growth growth_of_anything() const;
  // Returns pattern and content if the only step that may lengthen a text replaces a literal; else
  // empty views.
  void SoleReplacement(StringView* pattern, StringView* content) const;
  bool has_growing_steps() const { return n_growing_ > 0; }

  // Returns the scratch bytes that Run needs for a text of text_bytes arbitrary bytes.
  uint64_t ScratchBytes(uint64_t text_bytes) const;
  // *out lies in `text` or in one of the buffers. Buffers of growth().Bound(text.size) bytes
  // suffice; kBufferTooSmall if smaller ones do not. REQUIRES: `text` is valid UTF-8 and outside
  // the buffers; `matcher` is not null if uses_regex(). *keeps_start: true if the beginning of the
  // text was not removed.
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
  const Step* growing_ = nullptr;  // last growing step
  Growth growth_;
  bool uses_regex_ = false;
  bool has_form_ = false;           // has a Unicode normalisation step
  Growth form_input_;               // growth before the last such step
  uint64_t replacement_bytes_ = 3;  // maximum bytes that U+FFFD becomes
  bool replacement_is_kept_ = true;
};

}  // namespace arn
