#include <cerrno>
#include <cinttypes>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "platform/base/result.h"
#include "platform/os/mapped_file.h"

namespace arn {

Status MapFd(int fd, uint64_t offset, uint64_t bytes, MappedFile* out, Diag* diag) {
  *out = MappedFile();
  struct stat info;
  if (fstat(fd, &info) != 0) {
    return diag->Fail(Status::kIo, "descriptor %d: %s", fd, strerror(errno));
  }
  if (!S_ISREG(info.st_mode)) {
    return diag->Fail(Status::kIo, "descriptor %d is not a regular file", fd);
  }
  const uint64_t file_bytes = static_cast<uint64_t>(info.st_size);
  if (offset % 16384 != 0) {
    return diag->Fail(Status::kBadArgument, "offset %" PRIu64 " is not a multiple of 16384",
                      offset);
  }
  if (offset >= file_bytes || bytes > file_bytes - offset) {
    return diag->Fail(Status::kBundleTruncated,
                      "range of %" PRIu64 " bytes at %" PRIu64 " leaves the file of %" PRIu64
                      " bytes",
                      bytes, offset, file_bytes);
  }
  const uint64_t length = bytes != 0 ? bytes : file_bytes - offset;
  if (length > SIZE_MAX) {
    return diag->Fail(Status::kOutOfMemory, "%" PRIu64 " bytes do not fit the address space",
                      length);
  }
  void* p = mmap(nullptr, static_cast<size_t>(length), PROT_READ, MAP_SHARED, fd,
                 static_cast<off_t>(offset));
  if (p == MAP_FAILED) {
    return diag->Fail(Status::kOutOfMemory, "cannot map %" PRIu64 " bytes: %s", length,
                      strerror(errno));
  }
  out->bytes = {static_cast<const std::byte*>(p), static_cast<size_t>(length)};
  return Status::kOk;
}

Status OpenToMap(const char* path, int* out_fd, Diag* diag) {
  *out_fd = open(path, O_RDONLY | O_CLOEXEC);
  if (*out_fd >= 0) return Status::kOk;
  return diag->Fail(errno == ENOENT ? Status::kNotFound : Status::kIo, "%s: %s", path,
                    strerror(errno));
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
  const long page_bytes = sysconf(_SC_PAGESIZE);
  const auto page = static_cast<uint64_t>(page_bytes > 0 ? page_bytes : 4096);
  const size_t bytes = at.size() - static_cast<size_t>(at.size() % page);
  if (bytes == 0 || offset % page != 0 || reinterpret_cast<uintptr_t>(at.data()) % page != 0) {
    return 0;
  }
  void* p = mmap(at.data(), bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd,
                 static_cast<off_t>(offset));
  return p == MAP_FAILED ? 0 : bytes;
}

}  // namespace arn
