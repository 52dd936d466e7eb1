// Pre-tokenizers: split a normalised text into pieces that are encoded independently.
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

// Receives the pieces. A piece is never empty and is valid until Put returns.
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
  // True if a step is ByteLevel.
  bool units_are_bytes() const { return byte_level_ < n_steps_; }
  // Returns the replacement of a space in the last step; empty if there is none.
  StringView space_replacement() const;
  // Returns the buffer bytes for a text of text_bytes. No piece is longer than this or the text.
  uint64_t BufferBytes(uint64_t text_bytes) const;

  // `at_start`: the text begins the input. `matcher` may be null without regexes.
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
  static Status PutBytes(const Job& job, StringView piece);
  Status RunBehindByteLevel(const Job& job, uint32_t index, StringView piece) const;
  Status RunRegex(const Job& job, uint32_t index, StringView piece) const;
  Status RunDigits(const Job& job, uint32_t index, StringView piece) const;
  Status RunWhitespace(const Job& job, uint32_t index, StringView piece) const;
  Status RunWords(const Job& job, uint32_t index, StringView piece) const;
  Status RunPunctuation(const Job& job, uint32_t index, StringView piece) const;
  Status RunByteLevel(const Job& job, uint32_t index, StringView piece) const;
  Status RunMetaspace(const Job& job, uint32_t index, StringView piece) const;

  Step steps_[kMaxSteps];
  uint32_t n_steps_ = 0;
  uint32_t byte_level_ = kMaxSteps;  // index of the ByteLevel step
  bool uses_regex_ = false;
  bool drops_spaces_ = false;  // pieces contain no spaces when they reach the last step
};

}  // namespace arn
