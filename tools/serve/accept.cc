#include "tools/serve/accept.h"

#include <cerrno>
#include <chrono>
#include <thread>

namespace arn::serve {

int AcceptNext(int listener, sockaddr* address, socklen_t* bytes, int flags) {
  for (;;) {
    const int sock = accept4(listener, address, bytes, flags);
    if (sock >= 0) return sock;
    switch (errno) {
      case EBADF:
      case EFAULT:
      case EINVAL:
      case ENOTSOCK: return -1;  // closed
      case EINTR: break;
      default: std::this_thread::sleep_for(std::chrono::milliseconds(10)); break;
    }
  }
}

}  // namespace arn::serve
