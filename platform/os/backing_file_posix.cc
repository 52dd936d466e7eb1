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

namespace arn {
namespace {

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
  if (bytes > INT64_MAX || ftruncate(fd, static_cast<off_t>(bytes)) != 0) {
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
  int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0 && errno == EEXIST) {
    // Empty: what a process leaves that was killed between this line and the unlink below.
    fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
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
  if (p != MAP_FAILED) return Status::kOk;
  return diag->Fail(Status::kOutOfMemory, "cannot map %zu bytes of the KV file: %s", at.size(),
                    strerror(errno));
}

void CloseBacking(int fd) { close(fd); }

Status DiscardBacking(Span<std::byte> range) {
  const long page_bytes = sysconf(_SC_PAGESIZE);
  const auto page = static_cast<uint64_t>(page_bytes > 0 ? page_bytes : 4096);
  const auto base = reinterpret_cast<uintptr_t>(range.data());
  const uint64_t first = AlignUp(base, page), end = (base + range.size()) & ~(page - 1);
  if (end <= first) return Status::kOk;
  void* start = range.data() + (first - base);
  return madvise(start, static_cast<size_t>(end - first), MADV_REMOVE) == 0 ? Status::kOk
                                                                            : Status::kIo;
}

}  // namespace arn
