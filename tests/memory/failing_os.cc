#include "failing_os.h"

#include <sys/mman.h>

#include "platform/base/arith.h"
#include "platform/os/pages.h"

namespace arn {
namespace {

int64_t g_countdown = -1;
int64_t g_live = 0;

bool FailsNow() { return g_countdown >= 0 && g_countdown-- == 0; }

}  // namespace

Result<Span<std::byte>> ReservePages(uint64_t bytes) {
  if (bytes == 0 || FailsNow()) return Status::kOutOfMemory;
  const size_t rounded = static_cast<size_t>(AlignUp(bytes, 4096));
  void* p = mmap(nullptr, rounded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return Status::kOutOfMemory;
  ++g_live;
  return Span<std::byte>(static_cast<std::byte*>(p), rounded);
}

Result<Span<std::byte>> ReserveHugePages(uint64_t bytes) { return ReservePages(bytes); }

void ProtectPages(Span<std::byte>) {}

Status LockPages(Span<const std::byte>) { return FailsNow() ? Status::kOutOfMemory : Status::kOk; }

void ReleasePages(Span<std::byte> pages) {
  if (pages.empty()) return;
  munmap(pages.data(), pages.size());
  --g_live;
}

Status TrimPages(Span<std::byte>) { return Status::kOk; }
void ExpectScatteredReads(Span<const std::byte>) {}
void ForgetPages(Span<const std::byte>) {}
void ForgetPagesAround(Span<const std::byte>, Span<const std::byte>) {}

namespace test {

void FailAfter(int64_t n) { g_countdown = n; }
int64_t LiveReservations() { return g_live; }

}  // namespace test
}  // namespace arn
