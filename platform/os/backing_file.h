// Memory whose contents the OS may write to a file and drop, instead of keeping them resident.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/base/diag.h"
#include "platform/base/span.h"
#include "platform/base/status.h"

namespace arn {

// Makes a file of `bytes` zeros that take no room until they are written to, and removes its name
// at once: it is gone with its last mapping, however the process ends. kIo when there is something
// at `path` already (an empty file is taken over), kNotFound without the folder, kDiskFull when the
// disk has less than `bytes` free. Close *out_fd with CloseBacking once everything is mapped.
Status MakeBacking(const char* path, uint64_t bytes, int* out_fd, Diag* diag);
// Puts [offset, offset + at.size()) of it over memory that ReservePages gave; both begin at an OS
// page. Should the disk be full when the OS needs a block of it, the process gets SIGBUS: nobody
// can be asked any more.
Status MapBacking(int fd, uint64_t offset, Span<std::byte> at, Diag* diag);
void CloseBacking(int fd);
// Gives the blocks and the memory of the whole OS pages inside the range back; they become zero.
Status DiscardBacking(Span<std::byte> range);

}  // namespace arn
