#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "platform/base/result.h"
#include "platform/os/replace_file.h"

namespace arn {
namespace {

Status Failed(const char* what, const char* path, int error, Diag* diag) {
  Status status = Status::kIo;
  if (error == ENOENT) status = Status::kNotFound;
  if (error == ENOSPC || error == EDQUOT) status = Status::kDiskFull;
  return diag->Fail(status, "%s: cannot %s: %s", path, what, strerror(error));
}

// Whether the name still means the open file.
bool HasName(int fd, const char* name) {
  struct stat open_file, named;
  return fstat(fd, &open_file) == 0 && lstat(name, &named) == 0 &&
         open_file.st_dev == named.st_dev && open_file.st_ino == named.st_ino;
}

Status SyncFolderOf(const char* path, Diag* diag) {
  char folder[kMaxPathBytes];
  std::snprintf(folder, sizeof folder, "%s", path);
  char* slash = std::strrchr(folder, '/');
  if (slash == nullptr) {
    std::snprintf(folder, sizeof folder, ".");
  } else {
    slash[slash == folder ? 1 : 0] = '\0';
  }
  const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return Failed("open the folder", folder, errno, diag);
  const int error = fsync(fd) == 0 ? 0 : errno;
  close(fd);
  // Some file systems do not sync folders.
  if (error == 0 || error == EINVAL) return Status::kOk;
  return Failed("sync the folder", folder, error, diag);
}

}  // namespace

Status BeginReplace(const char* path, ReplaceFile* out, Diag* diag) {
  out->fd = -1;
  const int n = std::snprintf(out->temporary, sizeof out->temporary, "%s.tmp", path);
  if (n < 0 || static_cast<size_t>(n) >= sizeof out->temporary) {
    return diag->Fail(Status::kBadArgument, "the path has more than %zu bytes",
                      sizeof out->temporary - sizeof ".tmp");
  }
  std::memcpy(out->path, path, std::strlen(path) + 1);
  // Another writer may have renamed the file between our open and our lock: then it is no longer
  // ours to write to, and the next one is.
  for (;;) {
    const int fd = open(out->temporary, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) return Failed("create", out->temporary, errno, diag);
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      close(fd);
      return diag->Fail(Status::kBadState, "%s: another save to this path is under way", path);
    }
    if (!HasName(fd, out->temporary)) {
      close(fd);
      continue;
    }
    out->fd = fd;
    if (ftruncate(fd, 0) == 0) return Status::kOk;
    const int error = errno;
    AbandonReplace(out);
    return Failed("empty", out->temporary, error, diag);
  }
}

Status WriteReplace(ReplaceFile* file, uint64_t offset, Span<const std::byte> bytes, Diag* diag) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = pwrite(file->fd, bytes.data() + done, bytes.size() - done,
                             static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return Failed("write", file->temporary, n == 0 ? EIO : errno, diag);
    done += static_cast<size_t>(n);
  }
  return Status::kOk;
}

Status FinishReplace(ReplaceFile* file, Diag* diag) {
  int error = fsync(file->fd) == 0 ? 0 : errno;
  if (error == 0 && rename(file->temporary, file->path) != 0) error = errno;
  if (error != 0) {
    AbandonReplace(file);
    return Failed("write", file->path, error, diag);
  }
  close(file->fd);  // and with it the lock
  file->fd = -1;
  return SyncFolderOf(file->path, diag);
}

void AbandonReplace(ReplaceFile* file) {
  if (file->fd < 0) return;
  unlink(file->temporary);
  close(file->fd);
  file->fd = -1;
}

}  // namespace arn
