#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "platform/os/marker_file.h"

namespace arn {

// Whoever is under way holds a lock, which the system takes from a process that ends. A byte is
// written once the lock is held: a file without it has only just been made.
Marking MakeMarker(const char* path, MarkerFile* out) {
  out->fd = -1;
  const int n = std::snprintf(out->path, sizeof out->path, "%s", path);
  if (n < 0 || static_cast<size_t>(n) >= sizeof out->path) return Marking::kFailed;
  int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  const bool is_new = fd >= 0;
  if (!is_new) fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return Marking::kFailed;
  Marking marking = Marking::kHeld;
  struct stat found;
  if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
    if (!is_new) {
      const bool is_marked = fstat(fd, &found) == 0 && found.st_size > 0;
      marking = is_marked ? Marking::kLeft : Marking::kHeld;
    } else {
      marking = write(fd, "!", 1) == 1 ? Marking::kMade : Marking::kFailed;
      if (marking == Marking::kFailed) (void)unlink(path);
    }
  }
  if (marking == Marking::kMade) {
    (void)fsync(fd);  // a driver may take the whole machine with it
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
