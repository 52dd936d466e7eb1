#include <sys/mman.h>
#include <unistd.h>

#include "platform/base/arith.h"
#include "platform/os/pages.h"

namespace arn {
namespace {

uint64_t PageBytes() {
  const long bytes = sysconf(_SC_PAGESIZE);
  return bytes > 0 ? static_cast<uint64_t>(bytes) : 4096;
}

}  // namespace

Result<Span<std::byte>> ReservePages(uint64_t bytes) {
  const uint64_t page = PageBytes();
  if (bytes == 0 || bytes > SIZE_MAX - page) return Status::kOutOfMemory;
  const size_t rounded = static_cast<size_t>(AlignUp(bytes, page));
  void* p = mmap(nullptr, rounded, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return Status::kOutOfMemory;
  return Span<std::byte>(static_cast<std::byte*>(p), rounded);
}

void ReleasePages(Span<std::byte> pages) {
  if (!pages.empty()) munmap(pages.data(), pages.size());
}

Status TrimPages(Span<std::byte> range) {
  const uint64_t page = PageBytes();
  const uint64_t first = AlignUp(reinterpret_cast<uintptr_t>(range.data()), page);
  const uint64_t end = (reinterpret_cast<uintptr_t>(range.data()) + range.size()) & ~(page - 1);
  if (end <= first) return Status::kOk;
  void* start = range.data() + (first - reinterpret_cast<uintptr_t>(range.data()));
  return madvise(start, static_cast<size_t>(end - first), MADV_DONTNEED) == 0 ? Status::kOk
                                                                              : Status::kIo;
}

}  // namespace arn
