#include "converter/write/out_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstring>

#include "converter/error.h"

namespace arn::convert {
namespace {

constexpr size_t kBlockBytes = size_t{4} << 20;

}  // namespace

OutFile::OutFile(const std::filesystem::path& path) : path_(path), temporary_(path) {
  temporary_ += ".tmp-" + std::to_string(getpid());
  fd_ = open(temporary_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd_ < 0) Fail("%s: cannot create: %s", temporary_.c_str(), std::strerror(errno));
}

OutFile::~OutFile() {
  if (fd_ < 0) return;
  close(fd_);
  unlink(temporary_.c_str());
}

void OutFile::FailWrite(const char* action, int error) const {
  const bool is_full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  Fail("%s: %s after %" PRIu64 " bytes: %s%s", path_.c_str(), action, position_,
       is_full ? "disk full: " : "", std::strerror(error));
}

void OutFile::WriteAt(uint64_t offset, const void* data, size_t bytes) {
  const char* p = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t n = pwrite(fd_, p, bytes, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) FailWrite("cannot write", n < 0 ? errno : ENOSPC);
    p += n;
    offset += static_cast<uint64_t>(n);
    bytes -= static_cast<size_t>(n);
  }
}

void OutFile::Append(const void* data, size_t bytes) {
  const char* p = static_cast<const char*>(data);
  while (bytes > 0) {
    const size_t n = std::min(bytes, kBlockBytes - static_cast<size_t>(position_ % kBlockBytes));
    block_.insert(block_.end(), p, p + n);
    p += n;
    position_ += n;
    bytes -= n;
    if (position_ % kBlockBytes == 0) Flush();
  }
}

void OutFile::Flush() {
  WriteAt(position_ - block_.size(), block_.data(), block_.size());
  block_.clear();
}

void OutFile::PadTo(uint64_t position) {
  static constexpr char kZeros[4096] = {};
  while (position_ < position) {
    Append(kZeros, static_cast<size_t>(std::min<uint64_t>(position - position_, sizeof kZeros)));
  }
}

void OutFile::Truncate(uint64_t position) {
  Flush();
  while (ftruncate(fd_, static_cast<off_t>(position)) != 0) {
    if (errno != EINTR) FailWrite("cannot shorten", errno);
  }
  position_ = position;
}

void OutFile::Overwrite(uint64_t offset, const void* data, size_t bytes) {
  Flush();
  WriteAt(offset, data, bytes);
}

void OutFile::Commit() {
  Flush();
  if (fsync(fd_) != 0) FailWrite("cannot sync", errno);
  // close() may be the call that reports what a network file system could not store.
  const int fd = fd_;
  fd_ = -1;
  const bool is_stored = close(fd) == 0 && rename(temporary_.c_str(), path_.c_str()) == 0;
  if (!is_stored) {
    const int error = errno;
    unlink(temporary_.c_str());
    FailWrite("cannot finish", error);
  }
  // The new name survives a power cut once its folder is synced; a file system that cannot do so is
  // no failure.
  const std::filesystem::path folder = path_.has_parent_path() ? path_.parent_path() : ".";
  const int folder_fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder_fd >= 0) {
    (void)fsync(folder_fd);
    close(folder_fd);
  }
}

}  // namespace arn::convert
