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

// An open descriptor for MapFd, MapCopy. kNotFound or kIo, with the path and the system's reason in
// diag.
Status OpenToMap(const char* path, int* out_fd, Diag* diag);
void CloseMapped(int fd);
// A second descriptor of the same open file; -1 when there is none to be had.
int DuplicateMapped(int fd);
// Maps [offset, offset + bytes) of an open file; bytes 0: up to the end. `offset` is a multiple of
// 16384. The descriptor may be closed afterwards. kIo: not a regular file; kBundleTruncated: the
// range leaves it; kOutOfMemory.
Status MapFd(int fd, uint64_t offset, uint64_t bytes, MappedFile* out, Diag* diag);
void UnmapFile(MappedFile* file);

// Puts a copy-on-write mapping of [offset, offset + at.size()) of an open file over memory that
// ReservePages gave. Whole OS pages only: returns how many bytes from the start of `at` are mapped
// now, 0 when the two do not lie alike or the OS refuses; the rest is as before. The file is not
// changed by writes to the memory; it must not be truncated while the mapping lives.
size_t MapCopy(int fd, uint64_t offset, Span<std::byte> at);

}  // namespace arn
