#include "tools/serve/heap.h"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace arn::serve {

#ifdef __GLIBC__
namespace {

constexpr size_t kMmapBytes = 128 * 1024;  // blocks from here on have a mapping of their own
constexpr size_t kTrimBytes = 256 * 1024;

}  // namespace
#endif

void SetUpHeap() {
#ifdef __GLIBC__
  mallopt(M_ARENA_MAX, 1);
  mallopt(M_MMAP_THRESHOLD, kMmapBytes);
  mallopt(M_TRIM_THRESHOLD, kTrimBytes);
#endif
}

void CommitHeap([[maybe_unused]] size_t bytes) {
#ifdef __GLIBC__
  constexpr size_t kBlock = kMmapBytes / 2;
  mallopt(M_TRIM_THRESHOLD, static_cast<int>(bytes + kTrimBytes));
  std::vector<std::unique_ptr<char[]>> blocks;
  for (size_t n = 0; n < bytes; n += kBlock) {
    blocks.push_back(std::make_unique_for_overwrite<char[]>(kBlock));
    std::memset(blocks.back().get(), 1, kBlock);
    // The compiler would leave out what nobody reads.
    asm volatile("" : : "r"(blocks.back().get()) : "memory");
  }
#endif
}

void TrimHeap() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

}  // namespace arn::serve
