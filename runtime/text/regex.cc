#include "runtime/text/regex.h"

#include <cstdio>
#include <cstring>

#include "pcre2.h"
#include "platform/base/arith.h"
#include "runtime/text/utf8.h"

namespace arn {
namespace {

constexpr size_t kAlign = alignof(max_align_t);

// Compiling takes a block for the code and some for its own work. Nothing is given back: the blocks
// are few and small.
void* TakeFromArena(size_t bytes, void* arena) {
  Result<void*> block = static_cast<Arena*>(arena)->Allocate(bytes, kAlign);
  return block.ok() ? block.value() : nullptr;
}
void KeepInArena(void*, void*) {}

// What PCRE2 says of an error. Its texts are 8 KB: a small library has the number alone.
struct Reason {
  explicit Reason(int error) {
#if defined(ARN_SMALL_CODE)
    std::snprintf(text, sizeof text, "error %d of PCRE2", error);
#else
    pcre2_get_error_message(error, reinterpret_cast<PCRE2_UCHAR*>(text), sizeof text);
#endif
  }
  char text[128] = {};
};

}  // namespace

uint64_t Regex::ArenaBytes(size_t pattern_bytes) { return 16384 + uint64_t{64} * pattern_bytes; }

Status Regex::Compile(StringView pattern, const char* what, Arena* arena, Diag* diag) {
  const uint64_t limit = ArenaBytes(pattern.size);
  ARN_ASSIGN(void* memory, arena->Allocate(limit, kAlign));
  const uint64_t memory_mark =
      arena->mark() - limit;  // not before: aligning may have skipped bytes
  Arena own({static_cast<std::byte*>(memory), static_cast<size_t>(limit)});
  pcre2_general_context* general = pcre2_general_context_create(TakeFromArena, KeepInArena, &own);
  pcre2_compile_context* context =
      general == nullptr ? nullptr : pcre2_compile_context_create(general);
  if (context == nullptr) return Status::kInternal;
  pcre2_set_newline(context, PCRE2_NEWLINE_LF);
  int error = 0;
  PCRE2_SIZE offset = 0;
  // The optimizations of the start would look through the whole rest of the text for a character
  // that the pattern needs, once for each match.
  const pcre2_code* code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data), pattern.size,
                    PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C | PCRE2_NO_START_OPTIMIZE,
                    &error, &offset, context);
  if (code == nullptr) {
    return diag->Fail(Status::kBadBundle,
                      "%s: the regular expression cannot be used: %s (byte %zu)", what,
                      Reason(error).text, offset);
  }
  code_ = code;
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

Status RegexMatcher::Init(Arena* scratch, size_t text_bytes) {
  constexpr size_t kContextBytes = 4096;
  ARN_ASSIGN(void* block, scratch->Allocate(kScratchBytes, kAlign));
  std::byte* const memory = static_cast<std::byte*>(block);
  pool_.contexts = Arena({memory, kContextBytes});
  pool_.frames = memory + kContextBytes;
  pool_.frame_bytes = kScratchBytes - kContextBytes;
  pcre2_general_context* general = pcre2_general_context_create(Take, Return, &pool_);
  if (general == nullptr) return Status::kInternal;
  context_ = pcre2_match_context_create(general);
  data_ = pcre2_match_data_create(1, general);  // of the groups only the whole match counts
  if (context_ == nullptr || data_ == nullptr) return Status::kInternal;
  pool_.is_ready = true;
  // Honest patterns take a few steps for each character; others are stopped here.
  constexpr uint64_t kLeastSteps = 1000000;
  pcre2_set_match_limit(context_, static_cast<uint32_t>(Min<uint64_t>(
                                      kLeastSteps + uint64_t{16} * text_bytes, UINT32_MAX)));
  return Status::kOk;
}

Status RegexMatcher::Find(const Regex& regex, StringView subject, size_t start, bool* found,
                          size_t* begin, size_t* end, Diag* diag) {
  const int rc = pcre2_match(regex.code_, reinterpret_cast<PCRE2_SPTR>(subject.data), subject.size,
                             start, PCRE2_NO_UTF_CHECK, data_, context_);
  if (rc == PCRE2_ERROR_NOMATCH) {
    *found = false;
    return Status::kOk;
  }
  if (rc < 0) {
    const Status status =
        rc == PCRE2_ERROR_NOMEMORY || rc == PCRE2_ERROR_MATCHLIMIT || rc == PCRE2_ERROR_HEAPLIMIT
            ? Status::kUnsupported
            : Status::kInternal;
    return diag->Fail(status, "splitting a text of %zu bytes at byte %zu: %s", subject.size, start,
                      Reason(rc).text);
  }
  const PCRE2_SIZE* const range = pcre2_get_ovector_pointer(data_);
  *found = true;
  *begin = range[0];
  // \K in a lookahead could put the start behind the end.
  *end = Max<size_t>(range[0], range[1]);
  return Status::kOk;
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
