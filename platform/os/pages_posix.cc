#include <sys/mman.h>
#include <unistd.h>

#include "platform/base/arith.h"
#include "platform/os/huge_pages.h"
#include "platform/os/pages.h"

namespace arn {
namespace {

uint64_t PageBytes() {
  const long bytes = sysconf(_SC_PAGESIZE);
  return bytes > 0 ? static_cast<uint64_t>(bytes) : 4096;
}

// Calls madvise() for the whole pages of the range. Returns false if it fails.
bool AdviseWholePages(Span<const std::byte> range, int advice) {
  const uint64_t page = PageBytes();
  const uint64_t first = AlignUp(reinterpret_cast<uintptr_t>(range.data()), page);
  const uint64_t end = (reinterpret_cast<uintptr_t>(range.data()) + range.size()) & ~(page - 1);
  return end <= first ||
         madvise(reinterpret_cast<void*>(first), static_cast<size_t>(end - first), advice) == 0;
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

Result<Span<std::byte>> ReserveHugePages(uint64_t bytes) {
  const uint64_t huge = HugePageBytes();
  const uint64_t page = PageBytes();
  if (huge <= page || bytes < huge || bytes > SIZE_MAX / 2 - huge) return ReservePages(bytes);
  const uint64_t rounded = AlignUp(bytes, page);
  Result<Span<std::byte>> all = ReservePages(rounded + huge - page);
  if (!all.ok()) return ReservePages(bytes);
  std::byte* const from = all.value().data();
  const auto at = reinterpret_cast<uintptr_t>(from);
  const auto before = static_cast<size_t>(AlignUp(at, huge) - at);
  const size_t size = static_cast<size_t>(rounded);
  const size_t behind = all.value().size() - before - size;
  if (before > 0) munmap(from, before);
  if (behind > 0) munmap(from + before + size, behind);
  const Span<std::byte> pages(from + before, size);
  AskForHugePages({pages.data(), pages.size()});
  return pages;
}

void ProtectPages(Span<std::byte> range) {
  if (!range.empty()) (void)mprotect(range.data(), range.size(), PROT_READ);
}

Status LockPages(Span<const std::byte> range) {
  return mlock(range.data(), range.size()) == 0 ? Status::kOk : Status::kOutOfMemory;
}

void ReleasePages(Span<std::byte> pages) {
  if (!pages.empty()) munmap(pages.data(), pages.size());
}

Status TrimPages(Span<std::byte> range) {
  return AdviseWholePages({range.data(), range.size()}, MADV_DONTNEED) ? Status::kOk : Status::kIo;
}

// Hints: without them the pages merely stay longer.
void ExpectScatteredReads(Span<const std::byte> range) {
  (void)AdviseWholePages(range, MADV_RANDOM);
#ifdef MADV_NOHUGEPAGE
  (void)AdviseWholePages(range, MADV_NOHUGEPAGE);
#endif
}

void ForgetPages(Span<const std::byte> range) { (void)AdviseWholePages(range, MADV_DONTNEED); }

void ForgetPagesAround(Span<const std::byte> part, Span<const std::byte> range) {
  constexpr size_t kMaxFolio = size_t{2} << 20;
  const auto before = static_cast<size_t>(part.data() - range.data());
  const size_t begin = before < kMaxFolio ? 0 : before - kMaxFolio;
  const size_t end = Min(before + part.size() + kMaxFolio, range.size());
  ForgetPages({range.data() + begin, end - begin});
}

}  // namespace arn
