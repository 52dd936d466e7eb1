// A file, or a part of one, mapped read-only and shared.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/base/diag.h"
#include "platform/base/span.h"
#include "platform/base/status.h"

namespace arn {

struct MappedFile {
  Span<const std::byte> bytes;
};

// kNotFound, kIo or kOutOfMemory, with the path and the system's reason in diag.
Status MapFile(const char* path, MappedFile* out, Diag* diag);
// Maps [offset, offset + bytes) of an open file; bytes 0: up to the end. `offset` is a multiple of
// 16384. The descriptor may be closed afterwards.
Status MapFd(int fd, uint64_t offset, uint64_t bytes, MappedFile* out, Diag* diag);
void UnmapFile(MappedFile* file);

}  // namespace arn
