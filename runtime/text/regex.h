// Regular expressions: PCRE2 with UTF and UCP, without JIT and without heap allocation.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/base/arena.h"
#include "platform/base/diag.h"
#include "platform/base/span.h"
#include "platform/base/status.h"
#include "runtime/text/work_budget.h"

struct pcre2_callout_block_8;
struct pcre2_real_code_8;
struct pcre2_real_match_context_8;
struct pcre2_real_match_data_8;

namespace arn {

class Regex {
 public:
  // Compiles into `arena`. `what` names the pattern in the error.
  Status Compile(StringView pattern, const char* what, Arena* arena, Diag* diag);
  // Returns the arena bytes that Compile may use; a pattern that needs more is refused.
  static uint64_t ArenaBytes(size_t pattern_bytes);

 private:
  friend class RegexMatcher;
  const pcre2_real_code_8* code_ = nullptr;
  const pcre2_real_code_8* counted_code_ = nullptr;  // the same, with a callout before each item
  uint64_t item_steps_ = 0;  // worst-case steps of an item before the next callout
};

// Match state, separate from Regex so that threads can share a Regex. Must not move after Init.
//
// PCRE2 limits the number of backtracks per match, but not the characters scanned by each. A match
// is therefore first tried within a short window of the text with few backtracks, at a constant
// cost per byte. If it reaches the end of the window or the limit, it is repeated on the whole
// text, with each step counted against the call's budget.
class RegexMatcher {
 public:
  // Bounds the backtracking depth; most patterns need a few KB.
  static constexpr uint64_t kScratchBytes = uint64_t{1} << 20;

  // Uses kScratchBytes of `scratch`. `budget` must outlive the matcher.
  Status Init(Arena* scratch, WorkBudget* budget);

  // Finds the first match at or after `start`. REQUIRES: `subject` is valid UTF-8 and `start` a
  // character boundary. kUnsupported or kCancelled: the budget is spent, or the pattern nests too
  // deep on this text.
  Status Find(const Regex& regex, StringView subject, size_t start, bool* found, size_t* begin,
              size_t* end, Diag* diag);

 private:
  // Memory for PCRE2: contexts first, then backtracking frames. A full frame array is copied to one
  // of twice the size while still alive, so arrays alternate between the two ends.
  struct Pool {
    Arena contexts;
    bool is_ready = false;
    std::byte* frames = nullptr;
    size_t frame_bytes = 0;
    size_t low_bytes = 0;
    size_t high_bytes = 0;
  };
  static void* Take(size_t bytes, void* pool);
  static void Return(void* block, void* pool);
  static int Count(pcre2_callout_block_8* block, void* matcher);
  Status FailMatch(int error, StringView subject, size_t at, Diag* diag) const;

  Pool pool_;
  WorkBudget* budget_ = nullptr;
  uint64_t item_steps_ = 0;
  size_t last_position_ = 0;  // position of the last counted item
  pcre2_real_match_context_8* context_ = nullptr;
  pcre2_real_match_context_8* counted_context_ = nullptr;
  pcre2_real_match_data_8* data_ = nullptr;
};

// Iterates over the non-overlapping matches of a regex, as Oniguruma does: skips an empty match
// directly after the previous match.
class RegexIterator {
 public:
  RegexIterator(const Regex& regex, RegexMatcher* matcher, StringView text)
      : regex_(regex), matcher_(matcher), text_(text) {}
  // *found is false at the end.
  Status Next(bool* found, size_t* begin, size_t* end, Diag* diag);

 private:
  const Regex& regex_;
  RegexMatcher* matcher_;
  StringView text_;
  size_t position_ = 0;
  size_t last_end_ = SIZE_MAX;
};

}  // namespace arn
