#include "runtime/chat/heap.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "platform/base/arith.h"

namespace arn::chat {

const char* TypeName(const Value& value) {
  switch (value.kind) {
    case Kind::kUndefined:
    case Kind::kMissing: return "Undefined";
    case Kind::kNone: return "None";
    case Kind::kBool: return "bool";
    case Kind::kInt:
    case Kind::kBigInt: return "int";
    case Kind::kFloat: return "float";
    case Kind::kString: return "str";
    case Kind::kList: return "list";
    case Kind::kTuple: return "tuple";
    case Kind::kRange: return "range";
    case Kind::kDict: return "dict";
    case Kind::kNamespace: return "Namespace";
    case Kind::kView: return "dict view";
    case Kind::kIterator: return "generator";
    case Kind::kMacro: return "Macro";
    case Kind::kFunction:
    case Kind::kMethod: return "function";
    case Kind::kLoop: return "LoopContext";
  }
  return "";
}

Heap::Heap(Span<std::byte> memory, uint64_t max_steps, Diag* diag)
    : total_bytes_(memory.size()),
      memory_(memory.subspan(0, memory.size() - GivenText::BitsFor(memory.size()))),
      given_(memory_, memory.subspan(memory_.size(), memory.size() - memory_.size())),
      max_steps_(max_steps),
      diag_(diag) {}

Status Heap::AllocateAtEnd(uint64_t bytes, uint64_t align, void** out) {
  const uint64_t room = memory_.size() - used_;
  const uint64_t unaligned = memory_.size() % align;
  if (unaligned > room || bytes > room - unaligned) return TooLargeError(bytes);
  memory_ = memory_.subspan(0, memory_.size() - static_cast<size_t>(unaligned + bytes));
  *out = memory_.end();
  return Status::kOk;
}

Status Heap::Allocate(uint64_t bytes, uint64_t align, void** out) {
  const uint64_t start = AlignUp(used_, align);
  if (start > memory_.size() || bytes > memory_.size() - start) return TooLargeError(bytes);
  used_ = start + bytes;
  *out = memory_.data() + start;
  return Status::kOk;
}

Status Heap::TooLargeError(uint64_t bytes) {
  return diag_->Fail(Status::kOutOfMemory,
                     "line %u: the template needs more memory than the chat's %zu bytes: %llu more "
                     "were requested with %llu in use (arn_chat_options.arena_bytes)",
                     line_, total_bytes_, static_cast<unsigned long long>(bytes),
                     static_cast<unsigned long long>(used_));
}

Status Heap::TooManyStepsError() {
  return Fail("the template took more than %llu steps",
              static_cast<unsigned long long>(max_steps_));
}

Status Heap::TooDeepError() { return Fail("nested deeper than %u levels", kMaxDepth); }

bool Heap::Extend(const char* end, uint64_t bytes) {
  if (end == nullptr || reinterpret_cast<const std::byte*>(end) != memory_.data() + used_ ||
      bytes > memory_.size() - used_) {
    return false;
  }
  used_ += bytes;
  return true;
}

Status Heap::Copy(std::string_view text, Value* out) { return Join(text, {}, out); }

Status Heap::Join(std::string_view a, std::string_view b, Value* out) {
  const uint64_t bytes = a.size() + b.size();
  if (bytes > UINT32_MAX) return TooLargeError(bytes);
  ARN_TRY(Spend(bytes / 64));
  if (!a.empty() && !b.empty() && Extend(a.data() + a.size(), b.size())) {
    char* const end = const_cast<char*>(a.data()) + a.size();
    std::memcpy(end, b.data(), b.size());
    given_.Copy(end, b, false);
    *out = TextValue({a.data(), static_cast<size_t>(bytes)});
    return Status::kOk;
  }
  char* text = nullptr;
  ARN_TRY(NewArray(bytes, &text));
  if (!a.empty()) std::memcpy(text, a.data(), a.size());
  if (!b.empty()) std::memcpy(text + a.size(), b.data(), b.size());
  given_.Copy(text, a, false);
  given_.Copy(text + a.size(), b, false);
  *out = TextValue({text, static_cast<size_t>(bytes)});
  return Status::kOk;
}

Status Heap::Fail(const char* format, ...) {
  char text[Diag::kCapacity];
  va_list args;
  va_start(args, format);
  std::vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return diag_->Fail(Status::kTemplateError, "line %u: %s", line_, text);
}

Status Heap::Raise(std::string_view message) {
  const int bytes = static_cast<int>(Min<size_t>(message.size(), Diag::kCapacity));
  return diag_->Fail(Status::kTemplateError, "%.*s", bytes, message.data());
}

Status TextBuilder::Append(std::string_view text) {
  if (text.empty()) return Status::kOk;
  ARN_TRY(heap_->Spend(text.size() / 64));
  const uint64_t needed = size_ + text.size();
  if (needed > capacity_) {
    const uint64_t more = Max<uint64_t>(needed - capacity_, Min<uint64_t>(capacity_, 4096));
    if (needed > UINT32_MAX) return heap_->Fail("a string is larger than 4 GiB");
    if (heap_->Extend(text_ + capacity_, more)) {
      capacity_ += more;
    } else {
      char* moved = nullptr;
      const uint64_t capacity = Max<uint64_t>(needed, size_ * 2);
      void* place = nullptr;
      ARN_TRY(heap_->Allocate(capacity, 1, &place));
      moved = static_cast<char*>(place);
      if (size_ > 0) std::memcpy(moved, text_, size_);
      heap_->given().Copy(moved, view(), false);
      text_ = moved;
      capacity_ = capacity;
    }
  }
  std::memcpy(text_ + size_, text.data(), text.size());
  heap_->given().Copy(text_ + size_, text, is_given_);
  size_ = needed;
  return Status::kOk;
}

Status ListBuilder::Append(const Value& value) {
  ARN_TRY(heap_->Spend(1));
  if (size_ == capacity_) {
    const uint64_t capacity = capacity_ == 0 ? 8 : uint64_t{capacity_} * 2;
    if (capacity > UINT32_MAX) return heap_->Fail("a list has too many items");
    Value* moved = nullptr;
    ARN_TRY(heap_->NewArray(capacity, &moved));
    if (size_ > 0) std::memcpy(static_cast<void*>(moved), items_, size_ * sizeof(Value));
    items_ = moved;
    capacity_ = static_cast<uint32_t>(capacity);
  }
  items_[size_++] = value;
  return Status::kOk;
}

Status ListBuilder::Finish(Value* out, Kind kind) {
  List* list = nullptr;
  ARN_TRY(heap_->New(&list));
  list->items = items_;
  list->size = size_;
  *out = ListValue(list, kind);
  return Status::kOk;
}

}  // namespace arn::chat
