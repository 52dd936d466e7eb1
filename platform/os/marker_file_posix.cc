#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "platform/os/marker_file.h"
#include "platform/os/retry.h"

namespace arn {

// The process holds a lock, which the system releases when the process ends. A byte is written
// after locking: a file without it was only just created.
Marking MakeMarker(const char* path, MarkerFile* out) {
  out->fd = -1;
  const int n = std::snprintf(out->path, sizeof out->path, "%s", path);
  if (n < 0 || static_cast<size_t>(n) >= sizeof out->path) return Marking::kFailed;
  int fd = Retried([&] { return open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666); });
  const bool is_new = fd >= 0;
  if (!is_new) fd = Retried([&] { return open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK); });
  if (fd < 0) return Marking::kFailed;
  Marking marking = Marking::kHeld;
  struct stat found;
  if (Retried([&] { return flock(fd, LOCK_EX | LOCK_NB); }) != 0) {
    // Without locks (a network file system may have none) the owner is unknown.
    if (errno != EWOULDBLOCK) marking = Marking::kFailed;
    if (errno != EWOULDBLOCK && is_new) (void)unlink(path);
  } else {
    if (!is_new) {
      const bool is_marked = fstat(fd, &found) == 0 && found.st_size > 0;
      marking = is_marked ? Marking::kLeft : Marking::kHeld;
    } else {
      const bool is_written = Retried([&] { return write(fd, "!", 1); }) == 1;
      marking = is_written ? Marking::kMade : Marking::kFailed;
      if (marking == Marking::kFailed) (void)unlink(path);
    }
  }
  if (marking == Marking::kMade) {
    (void)Retried([&] { return fsync(fd); });  // a driver may crash the whole machine
    out->fd = fd;
  } else {
    close(fd);
  }
  return marking;
}

void RemoveMarker(MarkerFile* marker) {
  if (marker->fd < 0) return;
  (void)unlink(marker->path);
  close(marker->fd);
  marker->fd = -1;
}

}  // namespace arn
