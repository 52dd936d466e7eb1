// Maps a file, or part of one, read-only and shared.
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

// Opens a regular file for MapFd and MapCopy. kNotFound or kIo, with path and reason (the system's,
// or the actual file type) in diag. Never blocks.
Status OpenToMap(const char* path, int* out_fd, Diag* diag);
void CloseMapped(int fd);
// Duplicates a descriptor; -1 on failure.
int DuplicateMapped(int fd);
// Maps [offset, offset + bytes) of an open file; bytes 0: to the end. REQUIRES: `offset` is a
// multiple of 16384. Aligned so that huge pages are possible, if the system has them. The
// descriptor may be closed afterwards. kIo: not a regular file; kBundleTruncated: the range exceeds
// the file; kOutOfMemory.
Status MapFd(int fd, uint64_t offset, uint64_t bytes, MappedFile* out, Diag* diag);
// Reads [offset, offset + out.size()) of an open file. kIo, kBundleTruncated.
Status ReadFd(int fd, uint64_t offset, Span<std::byte> out, Diag* diag);
// Returns the number of bytes that MapFd would map, and its errors.
Status CheckRange(int fd, uint64_t offset, uint64_t bytes, uint64_t* out_bytes, Diag* diag);
void UnmapFile(MappedFile* file);

// Reserves addresses that MapInto fills; reading them before ends the process. UnmapFile releases
// them with all that is mapped there. kOutOfMemory.
Status ReserveMapping(uint64_t bytes, MappedFile* out, Diag* diag);
// Maps [offset, offset + at.size()) of an open file over addresses of a reserved mapping, read-only
// and shared. REQUIRES: both are multiples of 16384, and the range lies in the file. kOutOfMemory.
Status MapInto(int fd, uint64_t offset, Span<const std::byte> at, Diag* diag);

// Maps [offset, offset + at.size()) of an open file copy-on-write over memory from ReservePages.
// Maps whole OS pages only: returns the bytes mapped from the start of `at`, 0 if offset and
// address are not equally aligned or the OS refuses; the rest is unchanged. Writes to the memory do
// not change the file. The file must not be truncated while the mapping lives.
size_t MapCopy(int fd, uint64_t offset, Span<std::byte> at);

}  // namespace arn
