#include <cerrno>
#include <cinttypes>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "platform/base/arith.h"
#include "platform/base/result.h"
#include "platform/os/backing_file.h"
#include "platform/os/retry.h"

namespace arn {
namespace {

// Linux's MADV_POPULATE_READ, since 5.14; older systems refuse it.
constexpr int kPopulateRead = 22;
// The system reads no more than this ahead at a time where its settings are the usual ones, and
// says nothing of the rest.
constexpr uint64_t kReadAheadBytes = 128 << 10;

Status Size(int fd, const char* path, uint64_t bytes, Diag* diag) {
  struct statvfs disk;
  if (fstatvfs(fd, &disk) == 0) {
    uint64_t free_bytes = 0;
    if (CheckedMul(disk.f_bavail, disk.f_frsize, &free_bytes) && free_bytes < bytes) {
      return diag->Fail(Status::kDiskFull,
                        "%s: the KV region has %" PRIu64 " bytes, the disk %" PRIu64 " free", path,
                        bytes, free_bytes);
    }
  }
  if (bytes > INT64_MAX || Retried([&] { return ftruncate(fd, static_cast<off_t>(bytes)); }) != 0) {
    const bool is_full = errno == ENOSPC || errno == EDQUOT || errno == EFBIG;
    return diag->Fail(is_full ? Status::kDiskFull : Status::kIo,
                      "%s: cannot make it %" PRIu64 " bytes long: %s", path, bytes,
                      strerror(errno));
  }
  return Status::kOk;
}

}  // namespace

Status MakeBacking(const char* path, uint64_t bytes, int* out_fd, Diag* diag) {
  *out_fd = -1;
  int fd =
      Retried([&] { return open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600); });
  if (fd < 0 && errno == EEXIST) {
    // Empty: left by a process killed between this line and the unlink below.
    fd = Retried([&] { return open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK); });
    struct stat info;
    if (fd >= 0 && (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size != 0)) {
      close(fd);
      fd = -1;
      errno = EEXIST;
    }
  }
  if (fd < 0) {
    return diag->Fail(errno == ENOENT ? Status::kNotFound : Status::kIo, "%s: %s", path,
                      strerror(errno));
  }
  unlink(path);
  const Status status = Size(fd, path, bytes, diag);
  if (status != Status::kOk) {
    close(fd);
    return status;
  }
  *out_fd = fd;
  return Status::kOk;
}

Status MapBacking(int fd, uint64_t offset, Span<std::byte> at, Diag* diag) {
  if (at.empty()) return Status::kOk;
  void* p = mmap(at.data(), at.size(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
                 static_cast<off_t>(offset));
  if (p != MAP_FAILED) {
    // Otherwise a page that is missing brings its neighbours, holes among them, and pushes out what
    // is read next where memory is short.
    madvise(p, at.size(), MADV_RANDOM);
    return Status::kOk;
  }
  return diag->Fail(Status::kOutOfMemory, "cannot map %zu bytes of the KV file: %s", at.size(),
                    strerror(errno));
}

void CloseBacking(int fd) { close(fd); }

uint64_t OsPageBytes() {
  const long bytes = sysconf(_SC_PAGESIZE);
  return bytes > 0 ? static_cast<uint64_t>(bytes) : 4096;
}

bool FindResident(Span<const std::byte> range, Span<unsigned char> out) {
  if (range.empty()) return true;
  if (out.size() < range.size() / OsPageBytes()) return false;
  return mincore(const_cast<std::byte*>(range.data()), range.size(), out.data()) == 0;
}

void AskForBacking(int fd, uint64_t offset, uint64_t bytes) {
  for (uint64_t done = 0; done < bytes; done += kReadAheadBytes) {
    posix_fadvise(fd, static_cast<off_t>(offset + done),
                  static_cast<off_t>(Min(bytes - done, kReadAheadBytes)), POSIX_FADV_WILLNEED);
  }
}

// Piece by piece once more: what the system has dropped meanwhile would be read by OS pages.
void AwaitBacking(int fd, uint64_t offset, Span<std::byte> range) {
  for (uint64_t done = 0; done < range.size(); done += kReadAheadBytes) {
    const uint64_t bytes = Min<uint64_t>(range.size() - done, kReadAheadBytes);
    AskForBacking(fd, offset + done, bytes);
    madvise(range.data() + done, static_cast<size_t>(bytes), kPopulateRead);
  }
}

void WriteBacking(int fd, uint64_t offset, uint64_t bytes) {
#if defined(SYNC_FILE_RANGE_WRITE) && (!defined(__ANDROID__) || __ANDROID_API__ >= 26)
  sync_file_range(fd, static_cast<off_t>(offset), static_cast<off_t>(bytes), SYNC_FILE_RANGE_WRITE);
#else
  // Begins to write too, and drops nothing that is mapped.
  posix_fadvise(fd, static_cast<off_t>(offset), static_cast<off_t>(bytes), POSIX_FADV_DONTNEED);
#endif
}

void DropBacking(int fd, uint64_t offset, Span<std::byte> range) {
  madvise(range.data(), range.size(), MADV_DONTNEED);  // what is mapped stays
  posix_fadvise(fd, static_cast<off_t>(offset), static_cast<off_t>(range.size()),
                POSIX_FADV_DONTNEED);
}

Status DiscardBacking(Span<std::byte> range) {
  const uint64_t page = OsPageBytes();
  const auto base = reinterpret_cast<uintptr_t>(range.data());
  const uint64_t first = AlignUp(base, page), end = (base + range.size()) & ~(page - 1);
  if (end <= first) return Status::kOk;
  void* start = range.data() + (first - base);
  return madvise(start, static_cast<size_t>(end - first), MADV_REMOVE) == 0 ? Status::kOk
                                                                            : Status::kIo;
}

}  // namespace arn
