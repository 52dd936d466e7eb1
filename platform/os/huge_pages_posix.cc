#include "platform/os/huge_pages.h"

#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "platform/base/arith.h"
#include "platform/os/system_file.h"

// Newer than the supported C libraries; an older kernel returns EINVAL.
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

namespace arn {
namespace {

// Reads a file line by line in a stack buffer; cuts longer lines.
class Lines {
 public:
  explicit Lines(const char* path) : fd_(open(path, O_RDONLY | O_CLOEXEC)) {}
  ~Lines() {
    if (fd_ >= 0) close(fd_);
  }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;

  bool is_open() const { return fd_ >= 0; }
  // Returns the next line without its end; null at the end.
  const char* Next() {
    size_t n = 0;
    bool any = false;
    for (char c; ReadByte(&c);) {
      any = true;
      if (c == '\n') break;
      if (n + 1 < sizeof line_) line_[n++] = c;
    }
    line_[n] = '\0';
    return any ? line_ : nullptr;
  }

 private:
  bool ReadByte(char* out) {
    if (at_ == end_) {
      const ssize_t got = read(fd_, buffer_, sizeof buffer_);
      if (got <= 0) return false;
      at_ = 0;
      end_ = static_cast<size_t>(got);
    }
    *out = buffer_[at_++];
    return true;
  }

  int fd_;
  size_t at_ = 0, end_ = 0;
  char buffer_[4096];
  char line_[256];
};

// Keys in smaps for huge pages by owner. No page is counted twice.
constexpr const char* kHugeKeys[] = {"AnonHugePages", "ShmemPmdMapped", "FilePmdMapped",
                                     "Shared_Hugetlb", "Private_Hugetlb"};

// Returns the bytes of a line "Key:   123 kB"; 0 for other lines.
uint64_t ReadCount(const char* line, const char* key) {
  const size_t n = std::strlen(key);
  unsigned long long kilobytes = 0;
  if (std::strncmp(line, key, n) != 0 || std::sscanf(line + n, ": %llu kB", &kilobytes) != 1) {
    return 0;
  }
  return uint64_t{kilobytes} * 1024;
}

void* Start(Span<const std::byte> range) { return const_cast<std::byte*>(range.data()); }

}  // namespace

uint64_t HugePageBytes() {
  int64_t bytes = 0;
  if (!ReadSystemNumber("", "/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", &bytes)) return 0;
  return bytes > 0 ? static_cast<uint64_t>(bytes) : 0;
}

void AskForHugePages(Span<const std::byte> range) {
#ifdef MADV_HUGEPAGE
  if (!range.empty()) (void)madvise(Start(range), range.size(), MADV_HUGEPAGE);
#else
  (void)range;
#endif
}

void MoveToHugePages(int fd, uint64_t offset, Span<const std::byte> mapped) {
  if (mapped.empty()) return;
  AskForHugePages(mapped);
  // Linux 6.1: works for files on tmpfs, and for others if built with CONFIG_READ_ONLY_THP_FOR_FS.
  if (madvise(Start(mapped), mapped.size(), MADV_COLLAPSE) == 0) return;
  // File systems with large folios create huge pages when they read an advised range. Resident
  // pages stay small, so drop them first.
  (void)posix_fadvise(fd, static_cast<off_t>(offset), static_cast<off_t>(mapped.size()),
                      POSIX_FADV_DONTNEED);
  (void)madvise(Start(mapped), mapped.size(), MADV_POPULATE_READ);
}

bool CountPages(Span<const std::byte> range, PageCounts* out) {
  *out = PageCounts();
  Lines lines("/proc/self/smaps");
  if (!lines.is_open()) return false;
  const auto begin = reinterpret_cast<uintptr_t>(range.data());
  const uintptr_t end = begin + range.size();
  bool is_inside = false, any = false;
  for (const char* line; (line = lines.Next()) != nullptr;) {
    unsigned long long first = 0, last = 0;
    if (std::sscanf(line, "%llx-%llx ", &first, &last) == 2) {
      is_inside = first < end && begin < last;
      any = true;
      continue;
    }
    if (!is_inside) continue;
    out->resident_bytes += ReadCount(line, "Rss");
    out->locked_bytes += ReadCount(line, "Locked");
    for (const char* key : kHugeKeys) out->huge_bytes += ReadCount(line, key);
  }
  const uint64_t most = range.size();
  out->resident_bytes = Min(out->resident_bytes, most);
  out->huge_bytes = Min(out->huge_bytes, most);
  out->locked_bytes = Min(out->locked_bytes, most);
  return any;
}

}  // namespace arn
