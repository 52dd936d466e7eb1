// Regular expressions: PCRE2 with UTF and UCP, without its JIT and without a heap.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/base/arena.h"
#include "platform/base/diag.h"
#include "platform/base/span.h"
#include "platform/base/status.h"

struct pcre2_real_code_8;
struct pcre2_real_match_context_8;
struct pcre2_real_match_data_8;

namespace arn {

class Regex {
 public:
  // `what` names the pattern in the error. The compiled form lies in `arena`.
  Status Compile(StringView pattern, const char* what, Arena* arena, Diag* diag);
  // What Compile may use at most; a pattern that needs more is refused.
  static uint64_t ArenaBytes(size_t pattern_bytes);

 private:
  friend class RegexMatcher;
  const pcre2_real_code_8* code_ = nullptr;
};

// The state of matching, apart from Regex so that one Regex serves many threads. It stays where
// Init was called.
class RegexMatcher {
 public:
  // Most patterns need a few KB of it; it is what bounds the depth of backtracking.
  static constexpr uint64_t kScratchBytes = uint64_t{1} << 20;

  // Uses kScratchBytes. `text_bytes`: of the longest subject; the number of steps that a match may
  // take grows with it.
  Status Init(Arena* scratch, size_t text_bytes);

  // The first match at `start` or later. `subject` is valid UTF-8, `start` a border of characters.
  Status Find(const Regex& regex, StringView subject, size_t start, bool* found, size_t* begin,
              size_t* end, Diag* diag);

 private:
  // What PCRE2 asks memory from: first for its contexts, then for backtracking frames. A full array
  // of frames is copied to one of twice the size while it is still alive, so they lie alternately
  // at either end.
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

  Pool pool_;
  pcre2_real_match_context_8* context_ = nullptr;
  pcre2_real_match_data_8* data_ = nullptr;
};

// All matches of a regex in a text, in order and not overlapping, as Oniguruma's iteration has
// them: an empty match right behind the previous match does not count.
class RegexIterator {
 public:
  RegexIterator(const Regex& regex, RegexMatcher* matcher, StringView text)
      : regex_(regex), matcher_(matcher), text_(text) {}
  // *found is false when there are no more.
  Status Next(bool* found, size_t* begin, size_t* end, Diag* diag);

 private:
  const Regex& regex_;
  RegexMatcher* matcher_;
  StringView text_;
  size_t position_ = 0;
  size_t last_end_ = SIZE_MAX;
};

}  // namespace arn
