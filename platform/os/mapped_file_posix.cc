#include <cerrno>
#include <cinttypes>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "platform/base/arith.h"
#include "platform/base/result.h"
#include "platform/os/huge_pages.h"
#include "platform/os/mapped_file.h"
#include "platform/os/retry.h"

namespace arn {
namespace {

const char* KindName(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  if (S_ISSOCK(mode)) return "a socket";
  return "a special file";
}

}  // namespace

namespace {

uint64_t PageBytes() {
  const long bytes = sysconf(_SC_PAGESIZE);
  return bytes > 0 ? static_cast<uint64_t>(bytes) : 4096;
}

// Maps `length` bytes at an address congruent to `offset` modulo the huge page size. Returns
// MAP_FAILED with errno on failure.
void* Map(int fd, uint64_t offset, size_t length) {
  const uint64_t huge = HugePageBytes();
  const auto at = static_cast<off_t>(offset);
  if (huge == 0 || length < huge || length > SIZE_MAX / 2 - huge) {
    return mmap(nullptr, length, PROT_READ, MAP_SHARED, fd, at);
  }
  // Reserves the address space first, so that no other mapping takes it.
  const size_t space = length + static_cast<size_t>(huge);
  void* const all =
      mmap(nullptr, space, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all == MAP_FAILED) return mmap(nullptr, length, PROT_READ, MAP_SHARED, fd, at);
  char* const from = static_cast<char*>(all);
  const auto first = reinterpret_cast<uintptr_t>(from);
  const auto before = static_cast<size_t>((offset % huge + huge - first % huge) % huge);
  void* const p = mmap(from + before, length, PROT_READ, MAP_SHARED | MAP_FIXED, fd, at);
  const int error = errno;
  if (p == MAP_FAILED) {
    munmap(all, space);
  } else {
    const size_t end = before + AlignUp(length, PageBytes());
    if (before > 0) munmap(from, before);
    if (end < space) munmap(from + end, space - end);
  }
  errno = error;
  return p;
}

}  // namespace

Status CheckRange(int fd, uint64_t offset, uint64_t bytes, uint64_t* out_bytes, Diag* diag) {
  struct stat info;
  if (fstat(fd, &info) != 0) {
    return diag->Fail(Status::kIo, "descriptor %d: %s", fd, strerror(errno));
  }
  if (!S_ISREG(info.st_mode)) {
    return diag->Fail(Status::kIo, "descriptor %d is %s, not a regular file", fd,
                      KindName(info.st_mode));
  }
  const uint64_t file_bytes = static_cast<uint64_t>(info.st_size);
  if (offset % 16384 != 0) {
    return diag->Fail(Status::kBadArgument, "offset %" PRIu64 " is not a multiple of 16384",
                      offset);
  }
  if (file_bytes == 0) return diag->Fail(Status::kBundleTruncated, "the file is empty");
  if (offset >= file_bytes || bytes > file_bytes - offset) {
    return diag->Fail(Status::kBundleTruncated,
                      "range of %" PRIu64 " bytes at %" PRIu64 " exceeds the file of %" PRIu64
                      " bytes",
                      bytes, offset, file_bytes);
  }
  *out_bytes = bytes != 0 ? bytes : file_bytes - offset;
  if (*out_bytes > SIZE_MAX) {
    return diag->Fail(Status::kOutOfMemory, "%" PRIu64 " bytes do not fit the address space",
                      *out_bytes);
  }
  return Status::kOk;
}

Status MapFd(int fd, uint64_t offset, uint64_t bytes, MappedFile* out, Diag* diag) {
  *out = MappedFile();
  uint64_t length = 0;
  ARN_TRY(CheckRange(fd, offset, bytes, &length, diag));
  void* p = Map(fd, offset, static_cast<size_t>(length));
  if (p == MAP_FAILED) {
    return diag->Fail(Status::kOutOfMemory, "cannot map %" PRIu64 " bytes: %s", length,
                      strerror(errno));
  }
  out->bytes = {static_cast<const std::byte*>(p), static_cast<size_t>(length)};
  return Status::kOk;
}

Status ReserveMapping(uint64_t bytes, MappedFile* out, Diag* diag) {
  *out = MappedFile();
  const auto length = static_cast<size_t>(bytes);
  void* const p =
      mmap(nullptr, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) {
    return diag->Fail(Status::kOutOfMemory, "cannot reserve %" PRIu64 " bytes: %s", bytes,
                      strerror(errno));
  }
  out->bytes = {static_cast<const std::byte*>(p), length};
  return Status::kOk;
}

Status MapInto(int fd, uint64_t offset, Span<const std::byte> at, Diag* diag) {
  void* const to = const_cast<std::byte*>(at.data());
  if (mmap(to, at.size(), PROT_READ, MAP_SHARED | MAP_FIXED, fd, static_cast<off_t>(offset)) !=
      MAP_FAILED) {
    return Status::kOk;
  }
  return diag->Fail(Status::kOutOfMemory, "cannot map %zu bytes: %s", at.size(), strerror(errno));
}

Status ReadFd(int fd, uint64_t offset, Span<std::byte> out, Diag* diag) {
  for (size_t done = 0; done < out.size();) {
    const ssize_t n =
        pread(fd, out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      return diag->Fail(Status::kIo, "cannot read at %" PRIu64 ": %s", offset + done,
                        strerror(errno));
    }
    if (n == 0) {
      return diag->Fail(Status::kBundleTruncated, "the file ends at %" PRIu64, offset + done);
    }
    done += static_cast<size_t>(n);
  }
  return Status::kOk;
}

Status OpenToMap(const char* path, int* out_fd, Diag* diag) {
  // Without O_NONBLOCK, opening a pipe without a writer would block.
  *out_fd = Retried([&] { return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); });
  struct stat info;
  if (*out_fd < 0 || fstat(*out_fd, &info) != 0) {
    const int error = errno;
    if (*out_fd >= 0) close(*out_fd);
    *out_fd = -1;
    return diag->Fail(error == ENOENT ? Status::kNotFound : Status::kIo, "%s: %s", path,
                      strerror(error));
  }
  if (S_ISREG(info.st_mode)) return Status::kOk;
  close(*out_fd);
  *out_fd = -1;
  return diag->Fail(Status::kIo, "%s: is %s, not a regular file", path, KindName(info.st_mode));
}

void CloseMapped(int fd) { close(fd); }

int DuplicateMapped(int fd) { return fcntl(fd, F_DUPFD_CLOEXEC, 0); }

void UnmapFile(MappedFile* file) {
  if (!file->bytes.empty()) {
    munmap(const_cast<std::byte*>(file->bytes.data()), file->bytes.size());
  }
  *file = MappedFile();
}

size_t MapCopy(int fd, uint64_t offset, Span<std::byte> at) {
  const uint64_t page = PageBytes();
  const size_t bytes = at.size() - static_cast<size_t>(at.size() % page);
  if (bytes == 0 || offset % page != 0 || reinterpret_cast<uintptr_t>(at.data()) % page != 0) {
    return 0;
  }
  void* p = mmap(at.data(), bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd,
                 static_cast<off_t>(offset));
  return p == MAP_FAILED ? 0 : bytes;
}

}  // namespace arn
