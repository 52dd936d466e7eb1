// Takes connections as long as the listening socket is open.
#pragma once

#include <sys/socket.h>

namespace arn::serve {

// As accept4(), but tries again after 10 ms where a connection has failed before it was taken, as
// accept(2) advises, and where the process or the system has no descriptors or memory left.
int AcceptNext(int listener, sockaddr* address, socklen_t* bytes, int flags);

}  // namespace arn::serve
