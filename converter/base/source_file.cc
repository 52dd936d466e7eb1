#include "converter/base/source_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstring>

#include "converter/base/error.h"
#include "platform/os/retry.h"

namespace arn::convert {

SourceFile::SourceFile(const std::filesystem::path& path) : path_(path) {
  // O_NONBLOCK: opening a pipe without a writer must not block.
  fd_ = Retried([&] { return open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); });
  if (fd_ < 0) Fail("%s: cannot open: %s", path.c_str(), std::strerror(errno));
  struct stat info;
  const bool has_info = fstat(fd_, &info) == 0;
  const int error = errno;
  if (has_info && S_ISREG(info.st_mode)) {
    bytes_ = static_cast<uint64_t>(info.st_size);
    return;
  }
  close(fd_);
  if (!has_info) Fail("%s: cannot stat: %s", path.c_str(), std::strerror(error));
  Fail("%s: not a regular file", path.c_str());
}

SourceFile::~SourceFile() { close(fd_); }

void SourceFile::Read(uint64_t offset, void* out, size_t bytes) const {
  char* p = static_cast<char*>(out);
  while (bytes > 0) {
    const ssize_t n = pread(fd_, p, bytes, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) Fail("%s: cannot read: %s", path_.c_str(), std::strerror(errno));
    if (n == 0) Fail("%s: the file ended at %" PRIu64 " while it was read", path_.c_str(), offset);
    p += n;
    offset += static_cast<uint64_t>(n);
    bytes -= static_cast<size_t>(n);
  }
}

void SourceFile::Expect(uint64_t offset, uint64_t bytes) const {
#ifdef POSIX_FADV_WILLNEED
  // A hint: readers of several places of a file at once defeat the system's own read-ahead.
  (void)posix_fadvise(fd_, static_cast<off_t>(offset), static_cast<off_t>(bytes),
                      POSIX_FADV_WILLNEED);
#else
  (void)offset;
  (void)bytes;
#endif
}

}  // namespace arn::convert
