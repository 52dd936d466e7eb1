#include "tests/memory/allocation_trap.h"

#include <errno.h>
#include <stdlib.h>

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void __libc_free(void*);
}

namespace arn::test {
std::atomic<bool> g_trap{false};
std::atomic<uint64_t> g_calls{0};
}  // namespace arn::test

namespace {

using arn::test::g_calls;
using arn::test::g_trap;

void Count() {
  if (g_trap.load(std::memory_order_relaxed)) g_calls.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

extern "C" {
void* malloc(size_t n) {
  Count();
  return __libc_malloc(n);
}
void* calloc(size_t n, size_t m) {
  Count();
  return __libc_calloc(n, m);
}
void* realloc(void* p, size_t n) {
  Count();
  return __libc_realloc(p, n);
}
void* memalign(size_t align, size_t n) {
  Count();
  return __libc_memalign(align, n);
}
void* aligned_alloc(size_t align, size_t n) {
  Count();
  return __libc_memalign(align, n);
}
int posix_memalign(void** out, size_t align, size_t n) {
  Count();
  *out = __libc_memalign(align, n);
  return *out == nullptr ? ENOMEM : 0;
}
void free(void* p) {
  if (p != nullptr) Count();
  __libc_free(p);
}
}
