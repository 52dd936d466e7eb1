// List<T>: a growing array in an arena. What it outgrows stays in the arena until the arena is
// rewound, at most as much again as the final array.
#pragma once

#include <cstring>
#include <type_traits>

#include "platform/base/arena.h"
#include "platform/base/result.h"
#include "platform/base/span.h"

namespace arn::json_schema {

template <typename T>
class List {
 public:
  static_assert(std::is_trivially_copyable_v<T>);

  Status Append(Arena* arena, const T& value) {
    if (size_ == capacity_) {
      const uint32_t capacity = capacity_ == 0 ? 4 : capacity_ * 2;
      if (capacity <= capacity_) return Status::kOutOfMemory;
      const T copy = value;  // may lie in the array that is replaced
      ARN_TRY(Reserve(arena, capacity));
      data_[size_++] = copy;
      return Status::kOk;
    }
    data_[size_++] = value;
    return Status::kOk;
  }
  // Makes room for `capacity` elements in all.
  Status Reserve(Arena* arena, uint32_t capacity) {
    if (capacity <= capacity_) return Status::kOk;
    ARN_ASSIGN(void* memory, arena->Allocate(uint64_t{capacity} * sizeof(T), alignof(T)));
    if (size_ != 0) std::memcpy(memory, static_cast<const void*>(data_), size_ * sizeof(T));
    data_ = static_cast<T*>(memory);
    capacity_ = capacity;
    return Status::kOk;
  }
  // REQUIRES: not empty.
  T Pop() { return data_[--size_]; }
  void Clear() { size_ = 0; }
  void Truncate(uint32_t size) { size_ = size; }

  uint32_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](uint32_t i) { return data_[i]; }
  const T& operator[](uint32_t i) const { return data_[i]; }
  T& back() { return data_[size_ - 1]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  Span<const T> span() const { return {data_, size_}; }

 private:
  T* data_ = nullptr;
  uint32_t size_ = 0;
  uint32_t capacity_ = 0;
};

}  // namespace arn::json_schema
