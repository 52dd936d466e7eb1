#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

#include "platform/base/hash.h"
#include "platform/os/clock.h"
#include "platform/os/random_number.h"

namespace arn {
namespace {

bool ReadSystem(uint64_t* out) {
  const int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  ssize_t n;
  do {
    n = read(fd, out, sizeof *out);
  } while (n < 0 && errno == EINTR);
  close(fd);
  return n == static_cast<ssize_t>(sizeof *out);
}

}  // namespace

uint64_t RandomNumber() {
  uint64_t number = 0;
  if (ReadSystem(&number)) return number;
  timespec now = {};
  clock_gettime(CLOCK_REALTIME, &now);
  const uint64_t parts[] = {MonotonicNs(), static_cast<uint64_t>(now.tv_sec),
                            static_cast<uint64_t>(now.tv_nsec), static_cast<uint64_t>(getpid()),
                            reinterpret_cast<uintptr_t>(&now)};
  return Xxh64(parts, sizeof parts);
}

}  // namespace arn
