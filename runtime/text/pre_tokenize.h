// Pre-tokenizers: a normalized text is split into the pieces that are encoded apart from each
// other.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/base/arena.h"
#include "platform/base/diag.h"
#include "platform/base/span.h"
#include "platform/base/status.h"
#include "runtime/text/regex.h"

namespace arn {

namespace fbs {
struct Tokenizer;
struct PreTokenizer;
enum class PreTokenizerKind : uint8_t;
enum class SplitBehavior : uint8_t;
enum class PrependScheme : uint8_t;
}  // namespace fbs

// Where the pieces go. A piece is never empty and lives until Put returns.
class PieceSink {
 public:
  virtual Status Put(StringView piece) = 0;

 protected:
  ~PieceSink() = default;
};

class PreTokenizer {
 public:
  Status Init(const fbs::Tokenizer& table, Arena* arena, Diag* diag);
  static uint64_t ArenaBytes(const fbs::Tokenizer& table);

  bool uses_regex() const { return uses_regex_; }
  // The last step spells text in bytes.
  bool units_are_bytes() const;
  // What stands for a space in the last step; empty when nothing does.
  StringView space_replacement() const;
  // Bytes of the buffer for a text of that many bytes; no piece is longer than this or the text.
  uint64_t BufferBytes(uint64_t text_bytes) const;

  // `at_start`: the text is what the input begins with. `matcher` may be null without regexes.
  Status Run(StringView text, bool at_start, RegexMatcher* matcher, Span<char> buffer,
             PieceSink* sink, Diag* diag) const;

 private:
  struct Step {
    fbs::PreTokenizerKind kind;
    fbs::SplitBehavior behavior;
    fbs::PrependScheme prepend_scheme;
    bool has_regex;
    bool invert;
    bool add_prefix_space;
    bool individual_digits;
    bool split;
    StringView replacement;
    Regex regex;
  };
  class Splitter;
  struct Job;
  static constexpr uint32_t kMaxSteps = 16;

  Status InitStep(uint32_t index, const fbs::PreTokenizer& source, bool is_last, Arena* arena,
                  Diag* diag);
  Status RunStep(const Job& job, uint32_t index, StringView piece) const;
  Status RunRegex(const Job& job, uint32_t index, StringView piece) const;
  Status RunDigits(const Job& job, uint32_t index, StringView piece) const;
  Status RunWhitespace(const Job& job, uint32_t index, StringView piece) const;
  Status RunWords(const Job& job, uint32_t index, StringView piece) const;
  Status RunPunctuation(const Job& job, uint32_t index, StringView piece) const;
  Status RunByteLevel(const Job& job, uint32_t index, StringView piece) const;
  Status RunMetaspace(const Job& job, uint32_t index, StringView piece) const;

  Step steps_[kMaxSteps];
  uint32_t n_steps_ = 0;
  bool uses_regex_ = false;
  bool drops_spaces_ = false;  // no piece has a space when it comes to the last step
};

}  // namespace arn
