#include "tests/fuzz/counted_new.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<uint64_t> new_bytes{0}, new_calls{0};

void* Counted(size_t bytes) {
  new_bytes.fetch_add(bytes, std::memory_order_relaxed);
  new_calls.fetch_add(1, std::memory_order_relaxed);
  if (void* const block = std::malloc(bytes == 0 ? 1 : bytes)) return block;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(size_t bytes) { return Counted(bytes); }
void* operator new[](size_t bytes) { return Counted(bytes); }
void operator delete(void* block) noexcept { std::free(block); }
void operator delete[](void* block) noexcept { std::free(block); }
void operator delete(void* block, size_t) noexcept { std::free(block); }
void operator delete[](void* block, size_t) noexcept { std::free(block); }

namespace arn::test {

NewCounts CountsOfNew() {
  return {new_bytes.load(std::memory_order_relaxed), new_calls.load(std::memory_order_relaxed)};
}

}  // namespace arn::test
