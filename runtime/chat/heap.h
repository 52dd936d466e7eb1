// Heap: the memory of one rendering, and what bounds it: bytes, steps and depth. Nothing is given
// back before the rendering ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <string_view>
#include <type_traits>

#include "platform/base/diag.h"
#include "platform/base/result.h"
#include "platform/base/span.h"
#include "runtime/chat/value.h"

namespace arn::chat {

// How deep expressions, statements, macros and values may lie in each other. A level takes some
// hundred bytes of stack.
inline constexpr uint32_t kMaxDepth = 600;

class Heap {
 public:
  // `memory` is 16-byte aligned. Both outlive the heap.
  Heap(Span<std::byte> memory, uint64_t max_steps, Diag* diag)
      : memory_(memory), max_steps_(max_steps), diag_(diag) {}
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  // kOutOfMemory, with a sentence that says how much there is and how much was asked for.
  Status Allocate(uint64_t bytes, uint64_t align, void** out);
  template <typename T>
  Status New(T** out) {
    return NewArray(1, out);
  }
  // Value-initialised.
  template <typename T>
  Status NewArray(uint64_t count, T** out) {
    static_assert(std::is_trivially_destructible_v<T>);
    if (count > memory_.size()) return TooLarge(count);
    void* place = nullptr;
    ARN_TRY(Allocate(count * sizeof(T), alignof(T), &place));
    *out = static_cast<T*>(place);
    for (uint64_t i = 0; i < count; ++i) new (*out + i) T();
    return Status::kOk;
  }
  // `text` as a value of its own.
  Status Copy(std::string_view text, Value* out);
  // Both, one after the other; without copying `a` when nothing was allocated since.
  Status Join(std::string_view a, std::string_view b, Value* out);
  // Grows what was allocated last in place. False when `end` is not where that ends.
  bool Extend(const char* end, uint64_t bytes);

  // kTemplateError with "line N: " and a printf-style sentence.
  Status Fail(const char* format, ...) __attribute__((format(printf, 2, 3)));
  // kTemplateError with exactly this sentence, cut at the capacity of a Diag.
  Status Raise(std::string_view message);
  // Work that took about `steps` times as long as a step. kTemplateError when there were too many.
  Status Spend(uint64_t steps) {
    if (steps > max_steps_ - steps_) return TooManySteps();
    steps_ += steps;
    return Status::kOk;
  }
  // The work of looking for a text in another, at worst.
  Status SpendSearch(uint64_t text_bytes, uint64_t part_bytes) {
    return Spend(text_bytes / 16 + text_bytes * part_bytes / 512);
  }
  void set_line(uint32_t line) { line_ = line; }
  uint32_t line() const { return line_; }
  uint64_t used_bytes() const { return used_; }

 private:
  friend class Level;
  Status TooLarge(uint64_t bytes);
  Status TooManySteps();
  Status TooDeep();

  Span<std::byte> memory_;
  uint64_t used_ = 0;
  uint64_t max_steps_;
  uint64_t steps_ = 0;
  uint32_t depth_ = 0;
  uint32_t line_ = 0;
  Diag* diag_;
};

// One level of depth, as long as it lives.
class Level {
 public:
  explicit Level(Heap* heap) : heap_(heap) { ++heap_->depth_; }
  ~Level() { --heap_->depth_; }
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;
  // kTemplateError when it is one too many.
  Status Check() { return heap_->depth_ > kMaxDepth ? heap_->TooDeep() : Status::kOk; }

 private:
  Heap* heap_;
};

// A text that grows. Several may grow at a time; one that is alone is never copied.
class TextBuilder {
 public:
  explicit TextBuilder(Heap* heap) : heap_(heap) {}
  Status Append(std::string_view text);
  Status Append(char c) { return Append(std::string_view(&c, 1)); }
  std::string_view view() const { return {text_, static_cast<size_t>(size_)}; }
  Value ToValue() const { return TextValue(view()); }

 private:
  Heap* heap_;
  char* text_ = nullptr;
  uint64_t size_ = 0;
  uint64_t capacity_ = 0;
};

// A list that grows.
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
