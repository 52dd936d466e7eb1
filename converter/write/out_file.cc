#include "converter/write/out_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstring>

#include "converter/base/error.h"

namespace arn::convert {
namespace {

// Size of whole huge pages: file systems with large folios cache a file in chunks of the size of
// its writes, and can then map it with huge pages.
constexpr size_t kBlockBytes = size_t{4} << 20;

}  // namespace

OutFile::OutFile(const std::filesystem::path& path, bool keeps_unfinished)
    : path_(path), keeps_unfinished_(keeps_unfinished) {
  Diag diag;
  const Status status = BeginReplace(path.c_str(), 0666, &file_, &diag);
  if (status != Status::kOk) Fail("%s", diag.text());
  temporary_ = file_.temporary;
}

OutFile::~OutFile() {
  if (keeps_unfinished_ && file_.fd >= 0) {
    close(file_.fd);
  } else {
    AbandonReplace(&file_);
  }
}

void OutFile::FailWrite(const char* action, int error) const {
  const bool is_full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  Fail("%s: %s after %" PRIu64 " bytes: %s%s", path_.c_str(), action, position_,
       is_full ? "disk full: " : "", std::strerror(error));
}

void OutFile::WriteAt(uint64_t offset, const void* data, size_t bytes) {
  const char* p = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t n = pwrite(file_.fd, p, bytes, static_cast<off_t>(offset));
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
#ifdef SYNC_FILE_RANGE_WRITE
  // Starts writing to the disk, so that Commit() has little left to wait for.
  (void)sync_file_range(file_.fd, static_cast<off_t>(position_ - block_.size()),
                        static_cast<off_t>(block_.size()), SYNC_FILE_RANGE_WRITE);
#endif
  block_.clear();
}

void OutFile::PadTo(uint64_t position) {
  static constexpr char kZeros[4096] = {};
  while (position_ < position) {
    Append(kZeros, static_cast<size_t>(std::min<uint64_t>(position - position_, sizeof kZeros)));
  }
}

void OutFile::SkipTo(uint64_t position) {
  Flush();
  position_ = position;
}

void OutFile::Truncate(uint64_t position) {
  Flush();
  while (ftruncate(file_.fd, static_cast<off_t>(position)) != 0) {
    if (errno != EINTR) FailWrite("cannot truncate", errno);
  }
  position_ = position;
}

void OutFile::Overwrite(uint64_t offset, const void* data, size_t bytes) {
  Flush();
  WriteAt(offset, data, bytes);
}

void OutFile::Commit() {
  Flush();
  Diag diag;
  const Status status = FinishReplace(&file_, &diag);
  if (status == Status::kDiskFull) Fail("%s (disk full)", diag.text());
  if (status != Status::kOk) Fail("%s", diag.text());
}

}  // namespace arn::convert
