#include "runtime/text/regex.h"

#include <cstdio>
#include <cstring>

#include "pcre2.h"
#include "platform/base/arith.h"
#include "runtime/text/utf8.h"

namespace arn {
namespace {

constexpr size_t kAlign = alignof(max_align_t);

// Compiling allocates the code and some scratch. Nothing is freed: the blocks are few and small.
void* TakeFromArena(size_t bytes, void* arena) {
  Result<void*> block = static_cast<Arena*>(arena)->Allocate(bytes, kAlign);
  return block.ok() ? block.value() : nullptr;
}
void KeepInArena(void*, void*) {}

// Message of a PCRE2 error. The texts take 8 KB, so small builds give only the number.
struct Reason {
  explicit Reason(int error) {
#if defined(ARN_SMALL_CODE)
    std::snprintf(text, sizeof text, "PCRE2 error %d", error);
#else
    pcre2_get_error_message(error, reinterpret_cast<PCRE2_UCHAR*>(text), sizeof text);
#endif
  }
  char text[128] = {};
};

// Upper bound of a fixed repetition in the pattern: the largest number after a { that does not
// belong to \x, \o or \p.
uint64_t LongestRepetition(StringView pattern) {
  uint64_t longest = 0;
  for (size_t i = 0; i < pattern.size; ++i) {
    const char c = pattern.data[i];
    if (c == '\\' && i + 1 < pattern.size) {
      const char escaped = pattern.data[++i];
      const bool has_name = escaped == 'x' || escaped == 'o' || escaped == 'p' || escaped == 'P';
      if (has_name && i + 1 < pattern.size && pattern.data[i + 1] == '{') ++i;
    } else if (c == '{') {
      uint64_t n = 0;
      for (; i + 1 < pattern.size && pattern.data[i + 1] >= '0' && pattern.data[i + 1] <= '9';
           ++i) {
        n = Min<uint64_t>(n * 10 + static_cast<uint64_t>(pattern.data[i + 1] - '0'), UINT16_MAX);
      }
      longest = Max(longest, n);
    }
  }
  return longest;
}

// Limits of the first attempt at a match: bytes and backtracks. Words, numbers and runs of spaces
// are shorter.
constexpr size_t kWindowBytes = 128;
constexpr uint32_t kWindowTries = 48;

// Returns the end of the window at `at`, on a character boundary. Not after a line feed: PCRE2 does
// not match the start of a line at the end of a text.
size_t WindowEnd(StringView text, size_t at) {
  if (text.size - at <= kWindowBytes) return text.size;
  size_t end = at + kWindowBytes;
  while (end > at &&
         ((static_cast<uint8_t>(text.data[end]) & 0xC0) == 0x80 || text.data[end - 1] == '\n')) {
    --end;
  }
  return end;
}

// Characters of a run per step.
constexpr uint64_t kCharactersPerStep = 8;

}  // namespace

uint64_t Regex::ArenaBytes(size_t pattern_bytes) {
  return 2 * (16384 + uint64_t{64} * pattern_bytes);
}

Status Regex::Compile(StringView pattern, const char* what, Arena* arena, Diag* diag) {
  const uint64_t limit = ArenaBytes(pattern.size);
  ARN_ASSIGN(void* memory, arena->Allocate(limit, kAlign));
  const uint64_t memory_mark = arena->mark() - limit;  // not before: alignment may skip bytes
  Arena own({static_cast<std::byte*>(memory), static_cast<size_t>(limit)});
  pcre2_general_context* general = pcre2_general_context_create(TakeFromArena, KeepInArena, &own);
  pcre2_compile_context* context =
      general == nullptr ? nullptr : pcre2_compile_context_create(general);
  if (context == nullptr) return Status::kInternal;
  pcre2_set_newline(context, PCRE2_NEWLINE_LF);
  int error = 0;
  PCRE2_SIZE offset = 0;
  const auto compile = [&](uint32_t more_options) {
    // Without NO_START_OPTIMIZE each match would scan the rest of the text for a required
    // character.
    return pcre2_compile(
        reinterpret_cast<PCRE2_SPTR>(pattern.data), pattern.size,
        PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C | PCRE2_NO_START_OPTIMIZE | more_options,
        &error, &offset, context);
  };
  code_ = compile(0);
  if (code_ != nullptr) counted_code_ = compile(PCRE2_AUTO_CALLOUT);
  if (counted_code_ == nullptr) {
    return diag->Fail(Status::kBadBundle,
                      "%s: the regular expression cannot be used: %s (byte %zu)", what,
                      Reason(error).text, offset);
  }
  uint32_t highest_reference = 0;
  if (pcre2_pattern_info(code_, PCRE2_INFO_BACKREFMAX, &highest_reference) != 0) {
    return Status::kInternal;
  }
  if (highest_reference > 0) {
    // Comparing with a captured group cannot be counted in steps.
    return diag->Fail(
        Status::kBadBundle,
        "%s: the regular expression has a back-reference to group %u, which is not supported", what,
        highest_reference);
  }
  item_steps_ = 1 + LongestRepetition(pattern) / kCharactersPerStep;
  arena->Rewind(memory_mark + own.used_bytes());
  return Status::kOk;
}

void* RegexMatcher::Take(size_t bytes, void* opaque) {
  Pool* pool = static_cast<Pool*>(opaque);
  if (!pool->is_ready) return TakeFromArena(bytes, &pool->contexts);
  if (bytes > pool->frame_bytes - pool->low_bytes - pool->high_bytes) return nullptr;
  if (pool->low_bytes == 0) {
    pool->low_bytes = bytes;
    return pool->frames;
  }
  // From the upper end, aligned downwards.
  const size_t offset = (pool->frame_bytes - bytes) & ~(kAlign - 1);
  if (pool->high_bytes != 0 || offset < pool->low_bytes) return nullptr;
  pool->high_bytes = pool->frame_bytes - offset;
  return pool->frames + offset;
}

void RegexMatcher::Return(void* block, void* opaque) {
  Pool* pool = static_cast<Pool*>(opaque);
  if (!pool->is_ready || block == nullptr) return;
  if (block == pool->frames) {
    pool->low_bytes = 0;
  } else {
    pool->high_bytes = 0;
  }
}

int RegexMatcher::Count(pcre2_callout_block_8* block, void* opaque) {
  auto* const matcher = static_cast<RegexMatcher*>(opaque);
  const size_t position = block->current_position;
  const size_t last = matcher->last_position_;
  matcher->last_position_ = position;
  const size_t moved = position > last ? position - last : last - position;
  return matcher->budget_->Spend(matcher->item_steps_ + moved / kCharactersPerStep)
             ? 0
             : PCRE2_ERROR_CALLOUT;
}

Status RegexMatcher::Init(Arena* scratch, WorkBudget* budget) {
  constexpr size_t kContextBytes = 4096;
  ARN_ASSIGN(void* block, scratch->Allocate(kScratchBytes, kAlign));
  std::byte* const memory = static_cast<std::byte*>(block);
  budget_ = budget;
  pool_.contexts = Arena({memory, kContextBytes});
  pool_.frames = memory + kContextBytes;
  pool_.frame_bytes = kScratchBytes - kContextBytes;
  pcre2_general_context* general = pcre2_general_context_create(Take, Return, &pool_);
  if (general == nullptr) return Status::kInternal;
  context_ = pcre2_match_context_create(general);
  counted_context_ = pcre2_match_context_create(general);
  data_ = pcre2_match_data_create(1, general);  // only the whole match is needed, not the groups
  if (context_ == nullptr || counted_context_ == nullptr || data_ == nullptr) {
    return Status::kInternal;
  }
  pool_.is_ready = true;
  pcre2_set_match_limit(context_, kWindowTries);
  pcre2_set_match_limit(counted_context_, UINT32_MAX);
  pcre2_set_callout(counted_context_, Count, this);
  return Status::kOk;
}

Status RegexMatcher::FailMatch(int error, StringView subject, size_t at, Diag* diag) const {
  if (error == PCRE2_ERROR_CALLOUT) return budget_->Fail(diag);
  const bool is_too_deep = error == PCRE2_ERROR_NOMEMORY || error == PCRE2_ERROR_HEAPLIMIT;
  return diag->Fail(is_too_deep ? Status::kUnsupported : Status::kInternal,
                    "splitting a text of %zu bytes at byte %zu: %s", subject.size, at,
                    Reason(error).text);
}

Status RegexMatcher::Find(const Regex& regex, StringView subject, size_t start, bool* found,
                          size_t* begin, size_t* end, Diag* diag) {
  const auto text = reinterpret_cast<PCRE2_SPTR>(subject.data);
  const PCRE2_SIZE* const range = pcre2_get_ovector_pointer(data_);
  size_t counted_end = start;  // attempts before this position must be counted
  for (size_t at = start;;) {
    const size_t window_end = WindowEnd(subject, at);
    const bool is_last = window_end == subject.size;
    const bool is_counted = at < counted_end || (window_end == at && !is_last);
    const bool is_whole = !is_counted && is_last;
    int rc = 0;
    if (is_counted) {
      last_position_ = at;
      item_steps_ = regex.item_steps_;
      rc = pcre2_match(regex.counted_code_, text, subject.size, at,
                       PCRE2_NO_UTF_CHECK | PCRE2_ANCHORED, data_, counted_context_);
    } else {
      rc = pcre2_match(regex.code_, text, window_end, at,
                       PCRE2_NO_UTF_CHECK | (is_whole ? 0 : PCRE2_PARTIAL_HARD), data_, context_);
    }
    if (rc >= 0 && (is_counted || is_whole || range[0] < window_end)) {
      *found = true;
      *begin = range[0];
      // \K in a lookahead could set the start after the end.
      *end = Max<size_t>(range[0], range[1]);
      return Status::kOk;
    }
    if (rc == PCRE2_ERROR_MATCHLIMIT && !is_counted) {
      counted_end = Max(window_end, at + 1);
    } else if (rc == PCRE2_ERROR_PARTIAL && range[0] < window_end) {
      at = range[0];
      counted_end = at + 1;
    } else if (rc < 0 && rc != PCRE2_ERROR_NOMATCH && rc != PCRE2_ERROR_PARTIAL) {
      return FailMatch(rc, subject, at, diag);
    } else if (is_whole || at == subject.size) {
      *found = false;
      return Status::kOk;
    } else {
      const size_t next = is_counted ? at + ReadValidUtf8(subject.data + at).bytes : window_end;
      if (!budget_->Pass(next - at)) return budget_->Fail(diag);
      at = next;
    }
  }
}

Status RegexIterator::Next(bool* found, size_t* begin, size_t* end, Diag* diag) {
  while (position_ <= text_.size) {
    ARN_TRY(matcher_->Find(regex_, text_, position_, found, begin, end, diag));
    if (!*found) {
      position_ = text_.size + 1;
      return Status::kOk;
    }
    if (*begin == *end && *end == last_end_) {
      position_ =
          *end == text_.size ? text_.size + 1 : *end + ReadValidUtf8(text_.data + *end).bytes;
      continue;
    }
    position_ = *end;
    last_end_ = *end;
    return Status::kOk;
  }
  *found = false;
  return Status::kOk;
}

}  // namespace arn
