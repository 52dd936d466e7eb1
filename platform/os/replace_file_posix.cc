#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "platform/base/result.h"
#include "platform/os/replace_file.h"
#include "platform/os/retry.h"

namespace arn {
namespace {

Status FileError(const char* what, const char* path, int error, Diag* diag) {
  Status status = Status::kIo;
  if (error == ENOENT) status = Status::kNotFound;
  if (error == ENOSPC || error == EDQUOT) status = Status::kDiskFull;
  return diag->Fail(status, "%s: cannot %s: %s", path, what, strerror(error));
}

// Held while the descriptor is open.
Status Lock(int fd, const ReplaceFile& file, Diag* diag) {
  if (Retried([&] { return flock(fd, LOCK_EX | LOCK_NB); }) == 0) return Status::kOk;
  if (errno != EWOULDBLOCK) return FileError("lock", file.temporary, errno, diag);
  return diag->Fail(Status::kBadState, "%s: is being written by another process", file.path);
}

// True if the temporary name still refers to the open file.
bool HasName(const struct stat& open_file, const ReplaceFile& file) {
  struct stat named;
  return lstat(file.temporary, &named) == 0 && open_file.st_dev == named.st_dev &&
         open_file.st_ino == named.st_ino;
}

// Replaces a link by its target: absolute, or relative to the link's directory.
bool Follow(char (&path)[kMaxPathBytes]) {
  char target[kMaxPathBytes];
  const ssize_t n = readlink(path, target, sizeof target);
  if (n <= 0 || static_cast<size_t>(n) >= sizeof target) return false;
  target[n] = '\0';
  const char* slash = std::strrchr(path, '/');
  const size_t kept =
      target[0] == '/' || slash == nullptr ? 0 : static_cast<size_t>(slash + 1 - path);
  if (kept + static_cast<size_t>(n) >= sizeof path) return false;
  std::memcpy(path + kept, target, static_cast<size_t>(n) + 1);
  return true;
}

// Follows symbolic links to the file to replace, which need not exist yet.
Status FindTarget(char (&path)[kMaxPathBytes], Diag* diag) {
  constexpr int kMaxLinks = 40;  // same limit as Linux
  for (int i = 0; i < kMaxLinks; ++i) {
    struct stat info;
    if (lstat(path, &info) != 0) {
      return errno == ENOENT ? Status::kOk : FileError("read its metadata", path, errno, diag);
    }
    if (S_ISREG(info.st_mode)) return Status::kOk;
    if (!S_ISLNK(info.st_mode)) {
      return diag->Fail(Status::kIo, "%s: is not a regular file, and is not replaced", path);
    }
    if (!Follow(path)) return FileError("follow the link", path, ENAMETOOLONG, diag);
  }
  return FileError("follow the link", path, ELOOP, diag);
}

// Removes a stale temporary file. kBadState if another writer holds it.
Status RemoveLeft(const ReplaceFile& file, Diag* diag) {
  const int fd =
      Retried([&] { return open(file.temporary, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK); });
  if (fd < 0 && errno == ENOENT) return Status::kOk;
  if (fd < 0) return FileError("open", file.temporary, errno, diag);
  Status status = Status::kOk;
  struct stat info;
  if (fstat(fd, &info) != 0) {
    status = FileError("read its metadata", file.temporary, errno, diag);
  } else if (!S_ISREG(info.st_mode)) {
    status =
        diag->Fail(Status::kIo, "%s: is not a regular file, and is not replaced", file.temporary);
  } else {
    status = Lock(fd, file, diag);
  }
  if (status == Status::kOk && HasName(info, file) && unlink(file.temporary) != 0) {
    status = FileError("remove", file.temporary, errno, diag);
  }
  close(fd);
  return status;
}

Status OpenFolderOf(const char* path, int* out, Diag* diag) {
  char folder[kMaxPathBytes];
  std::snprintf(folder, sizeof folder, "%s", path);
  char* slash = std::strrchr(folder, '/');
  if (slash == nullptr) {
    std::snprintf(folder, sizeof folder, ".");
  } else {
    slash[slash == folder ? 1 : 0] = '\0';
  }
  *out = Retried([&] { return open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
  // Directories without read permission cannot be synced by their writers.
  if (*out >= 0 || errno == EACCES) return Status::kOk;
  return FileError("open the folder", folder, errno, diag);
}

}  // namespace

Status BeginReplace(const char* path, uint32_t mode, ReplaceFile* out, Diag* diag) {
  out->fd = -1;
  constexpr size_t kMostBytes = kMaxPathBytes - sizeof ".tmp";
  if (std::strlen(path) > kMostBytes) {
    return diag->Fail(Status::kBadArgument, "the path has more than %zu bytes", kMostBytes);
  }
  std::memcpy(out->path, path, std::strlen(path) + 1);
  ARN_TRY(FindTarget(out->path, diag));
  const int n = std::snprintf(out->temporary, sizeof out->temporary, "%s.tmp", out->path);
  if (n < 0 || static_cast<size_t>(n) >= sizeof out->temporary) {
    return FileError("create", out->path, ENAMETOOLONG, diag);
  }
  // Another writer may take the file for a stale one between open and lock; then it is lost and a
  // new attempt is made.
  constexpr int kMaxAttempts = 8;
  for (int i = 0; i < kMaxAttempts; ++i) {
    const int fd = Retried([&] {
      return open(out->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
    });
    if (fd < 0 && errno == EEXIST) {
      ARN_TRY(RemoveLeft(*out, diag));
      continue;
    }
    if (fd < 0) return FileError("create", out->temporary, errno, diag);
    const Status locked = Lock(fd, *out, diag);
    struct stat info;
    const int error = fstat(fd, &info) == 0 ? 0 : errno;
    if (locked == Status::kOk && error == 0 && (info.st_nlink > 0 || HasName(info, *out))) {
      out->fd = fd;
      return Status::kOk;
    }
    // Keeps the file if another writer took it for stale: that one has locked or removed it.
    if (locked != Status::kBadState && (locked != Status::kOk || error != 0)) {
      (void)unlink(out->temporary);
    }
    close(fd);
    ARN_TRY(locked);
    if (error != 0) return FileError("read its metadata", out->temporary, error, diag);
  }
  return diag->Fail(Status::kIo,
                    "%s: cannot be created or removed in %d attempts (other processes use it, or "
                    "the file system has no stable inode numbers)",
                    out->temporary, kMaxAttempts);
}

Status WriteReplace(ReplaceFile* file, uint64_t offset, Span<const std::byte> bytes, Diag* diag) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = pwrite(file->fd, bytes.data() + done, bytes.size() - done,
                             static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return FileError("write", file->temporary, n == 0 ? EIO : errno, diag);
    done += static_cast<size_t>(n);
  }
  return Status::kOk;
}

Status FinishReplace(ReplaceFile* file, Diag* diag) {
  // Opened first: after the rename only the sync can fail.
  int folder = -1;
  Status status = OpenFolderOf(file->path, &folder, diag);
  if (status == Status::kOk &&
      (Retried([&] { return fsync(file->fd); }) != 0 || rename(file->temporary, file->path) != 0)) {
    status = FileError("write", file->path, errno, diag);
  }
  if (status != Status::kOk) {
    if (folder >= 0) close(folder);
    AbandonReplace(file);
    return status;
  }
  close(file->fd);  // also releases the lock
  file->fd = -1;
  if (folder < 0) return Status::kOk;
  const int error = Retried([&] { return fsync(folder); }) == 0 ? 0 : errno;
  close(folder);
  // Some file systems cannot sync directories.
  if (error == 0 || error == EINVAL) return Status::kOk;
  return FileError(
      "sync its folder: the new contents are written, but a power failure may undo them",
      file->path, error, diag);
}

void AbandonReplace(ReplaceFile* file) {
  if (file->fd < 0) return;
  unlink(file->temporary);
  close(file->fd);
  file->fd = -1;
}

}  // namespace arn
