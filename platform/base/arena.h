// Arena: a bump allocator over memory that somebody else owns. Objects placed in it are never
// destroyed.
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

  // kOutOfMemory when it does not fit, kBadState after Seal(). `align` is a power of two.
  Result<void*> Allocate(uint64_t bytes, uint64_t align);

  // Value-initialised array of a type that needs no destructor.
  template <typename T>
  Result<Span<T>> AllocateArray(uint64_t count) {
    static_assert(std::is_trivially_destructible_v<T>);
    if (count > UINT64_MAX / sizeof(T)) return Status::kOutOfMemory;
    ARN_ASSIGN(void* p, Allocate(count * sizeof(T), alignof(T)));
    T* first = static_cast<T*>(p);
    for (uint64_t i = 0; i < count; ++i) new (first + i) T();
    return Span<T>(first, static_cast<size_t>(count));
  }

  // No allocation succeeds afterwards.
  void Seal() { sealed_ = true; }
  uint64_t used_bytes() const { return used_; }
  uint64_t mark() const { return used_; }
  // Gives back everything allocated since `mark`.
  void Rewind(uint64_t mark) { used_ = mark; }

 private:
  Span<std::byte> memory_;
  uint64_t used_ = 0;
  bool sealed_ = false;
};

}  // namespace arn
