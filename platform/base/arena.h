// Arena: bump allocator over borrowed memory. Objects in it are never destroyed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>

#include "platform/base/result.h"
#include "platform/base/span.h"

namespace arn {

class Arena {
 public:
  Arena() = default;
  explicit Arena(Span<std::byte> memory) : memory_(memory) {}

  // Returns kOutOfMemory if it does not fit, kBadState after EndAllocation(). REQUIRES: `align` is
  // a power of two.
  Result<void*> Allocate(uint64_t bytes, uint64_t align);

  // Allocates a value-initialised array of a trivially destructible type.
  template <typename T>
  Result<Span<T>> AllocateArray(uint64_t count) {
    static_assert(std::is_trivially_destructible_v<T>);
    if (count > UINT64_MAX / sizeof(T)) return Status::kOutOfMemory;
    ARN_ASSIGN(void* p, Allocate(count * sizeof(T), alignof(T)));
    T* first = static_cast<T*>(p);
    for (uint64_t i = 0; i < count; ++i) new (first + i) T();
    return Span<T>(first, static_cast<size_t>(count));
  }

  // Ends allocation: all later allocations fail.
  void EndAllocation() { has_ended_ = true; }
  uint64_t used_bytes() const { return used_; }
  uint64_t mark() const { return used_; }
  // Releases everything allocated since `mark`.
  void Rewind(uint64_t mark) { used_ = mark; }

 private:
  Span<std::byte> memory_;
  uint64_t used_ = 0;
  bool has_ended_ = false;
};

}  // namespace arn
