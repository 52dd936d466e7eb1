// Heap: memory of one rendering with limits on bytes, steps and depth. Frees nothing before the
// rendering ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <string_view>
#include <type_traits>

#include "platform/base/diag.h"
#include "platform/base/result.h"
#include "platform/base/span.h"
#include "runtime/chat/given_text.h"
#include "runtime/chat/value.h"

namespace arn::chat {

// Maximum nesting of expressions, statements, macros and values. A level takes a few hundred bytes
// of stack.
inline constexpr uint32_t kMaxDepth = 600;

class Heap {
 public:
  // REQUIRES: `memory` is 16-byte aligned. Both must outlive the heap.
  Heap(Span<std::byte> memory, uint64_t max_steps, Diag* diag);
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  // kOutOfMemory with a message that states the available and the requested bytes.
  Status Allocate(uint64_t bytes, uint64_t align, void** out);
  template <typename T>
  Status New(T** out) {
    return NewArray(1, out);
  }
  // Allocates a value-initialised array.
  template <typename T>
  Status NewArray(uint64_t count, T** out) {
    static_assert(std::is_trivially_destructible_v<T>);
    if (count > memory_.size()) return TooLargeError(count);
    void* place = nullptr;
    ARN_TRY(Allocate(count * sizeof(T), alignof(T), &place));
    *out = static_cast<T*>(place);
    for (uint64_t i = 0; i < count; ++i) new (*out + i) T();
    return Status::kOk;
  }
  // Allocates at the other end of the memory, downwards: for a growing array, last element first.
  Status AllocateAtEnd(uint64_t bytes, uint64_t align, void** out);
  // Copies `text` into the heap.
  Status Copy(std::string_view text, Value* out);
  // Concatenates; does not copy `a` if it is the last allocation.
  Status Join(std::string_view a, std::string_view b, Value* out);
  // Grows the last allocation in place. Returns false if it does not end at `end`.
  bool Extend(const char* end, uint64_t bytes);

  GivenText& given() { return given_; }

  // Returns kTemplateError with "line N: " and a printf-style message.
  Status Fail(const char* format, ...) __attribute__((format(printf, 2, 3)));
  // Returns kTemplateError with exactly this message, cut at the capacity of a Diag.
  Status Raise(std::string_view message);
  // Counts work of about `steps` steps. kTemplateError if the limit is exceeded.
  Status Spend(uint64_t steps) {
    if (steps > max_steps_ - steps_) return TooManyStepsError();
    steps_ += steps;
    return Status::kOk;
  }
  // Counts the worst-case work of a substring search.
  Status SpendSearch(uint64_t text_bytes, uint64_t part_bytes) {
    return Spend(text_bytes / 16 + text_bytes * part_bytes / 512);
  }
  void set_line(uint32_t line) { line_ = line; }
  uint32_t line() const { return line_; }
  uint64_t used_bytes() const { return used_; }

 private:
  friend class Level;
  Status TooLargeError(uint64_t bytes);
  Status TooManyStepsError();
  Status TooDeepError();

  const size_t total_bytes_;
  Span<std::byte> memory_;
  GivenText given_;
  uint64_t used_ = 0;
  uint64_t max_steps_;
  uint64_t steps_ = 0;
  uint32_t depth_ = 0;
  uint32_t line_ = 0;
  Diag* diag_;
};

// Counts one nesting level during its lifetime.
class Level {
 public:
  explicit Level(Heap* heap) : heap_(heap) { ++heap_->depth_; }
  ~Level() { --heap_->depth_; }
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;
  // kTemplateError if the limit is exceeded.
  Status Check() { return heap_->depth_ > kMaxDepth ? heap_->TooDeepError() : Status::kOk; }

 private:
  Heap* heap_;
};

// Growing string. Several may grow at once; a single one is never copied.
class TextBuilder {
 public:
  explicit TextBuilder(Heap* heap) : heap_(heap) {}
  Status Append(std::string_view text);
  Status Append(char c) { return Append(std::string_view(&c, 1)); }
  // Marks text appended from now on as given by the caller if its address does not tell
  // (GivenText): characters derived from others. Initially the template's.
  void set_given(bool is_given) { is_given_ = is_given; }
  // Marks text derived from `text`.
  void MakeFrom(std::string_view text) { is_given_ = heap_->given().HasGiven(text); }
  std::string_view view() const { return {text_, static_cast<size_t>(size_)}; }
  Value ToValue() const { return TextValue(view()); }

 private:
  Heap* heap_;
  char* text_ = nullptr;
  uint64_t size_ = 0;
  uint64_t capacity_ = 0;
  bool is_given_ = false;
};

// Growing list.
class ListBuilder {
 public:
  explicit ListBuilder(Heap* heap) : heap_(heap) {}
  Status Append(const Value& value);
  uint32_t size() const { return size_; }
  const Value* items() const { return items_; }
  Value* mutable_items() { return items_; }
  Status Finish(Value* out, Kind kind = Kind::kList);

 private:
  Heap* heap_;
  Value* items_ = nullptr;
  uint32_t size_ = 0;
  uint32_t capacity_ = 0;
};

}  // namespace arn::chat
