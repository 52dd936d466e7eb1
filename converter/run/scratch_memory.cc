#include "converter/run/scratch_memory.h"

#include <fcntl.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "converter/base/error.h"
#include "platform/base/arith.h"
#include "platform/base/diag.h"
#include "platform/os/backing_file.h"
#include "platform/os/pages.h"

namespace arn::convert {

ScratchMemory::ScratchMemory(const std::filesystem::path& path, uint64_t bytes) {
  std::error_code ignored;
  std::filesystem::remove(path, ignored);  // what a process killed at this line has left
  const auto fail = [&](const char* reason) {
    Fail("%s: cannot make a temporary file of %.1f MB: %s", path.c_str(),
         static_cast<double>(bytes) / 1e6, reason);
  };
  const uint64_t rounded = AlignUp(bytes, kAlign);
  const Result<Span<std::byte>> reserved = ReservePages(rounded + kAlign);
  if (!reserved.ok()) fail("too large for this system's memory addresses");
  reserved_ = reserved.value();
  const auto at = reinterpret_cast<uintptr_t>(reserved_.data());
  bytes_ = reserved_.subspan(static_cast<size_t>(AlignUp(at, kAlign) - at),
                             static_cast<size_t>(rounded));
  Diag diag;
  int fd = -1;
  Status status = MakeBacking(path.c_str(), bytes_.size(), &fd, &diag);
  int error = 0;
  if (status == Status::kOk) {
    error = posix_fallocate(fd, 0, static_cast<off_t>(bytes_.size()));
    // Not every file system can: then the file is sparse, and there was room for it.
    if (error == EOPNOTSUPP || error == EINVAL) error = 0;
    if (error == 0) status = MapBacking(fd, 0, bytes_, &diag);
    CloseBacking(fd);
  }
  if (status == Status::kOk && error == 0) return;
  ReleasePages(reserved_);
  const bool is_full =
      status == Status::kDiskFull || error == ENOSPC || error == EDQUOT || error == EFBIG;
  fail(is_full ? "disk full" : error != 0 ? std::strerror(error) : diag.text());
}

ScratchMemory::~ScratchMemory() { ReleasePages(reserved_); }

}  // namespace arn::convert
