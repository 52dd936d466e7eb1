// File-backed memory: the OS may write the contents to a file and drop the pages.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/base/diag.h"
#include "platform/base/span.h"
#include "platform/base/status.h"

namespace arn {

// Creates a sparse file of `bytes` zeros and unlinks it at once: it disappears with its last
// mapping, however the process ends. kIo if `path` exists (an empty file is reused), kNotFound if
// the directory does not exist, kDiskFull if less than `bytes` are free. Call CloseBacking on
// *out_fd after mapping.
Status MakeBacking(const char* path, uint64_t bytes, int* out_fd, Diag* diag);
// Maps [offset, offset + at.size()) of the file over memory from ReservePages. Both must begin at
// an OS page. If the disk is full when a block is allocated later, the process gets SIGBUS.
Status MapBacking(int fd, uint64_t offset, Span<std::byte> at, Diag* diag);
void CloseBacking(int fd);

// The functions below change where the memory's contents are, never the contents. The OS reads
// only the page that is touched of such a mapping.

uint64_t OsPageBytes();
// Writes one byte per OS page to `out`: the lowest bit is set if the page is in memory. Returns
// false if the system cannot tell. REQUIRES, here and below: both ends of the range are at OS page
// boundaries.
bool FindResident(Span<const std::byte> range, Span<unsigned char> out);
// Starts reading the missing pages and returns without waiting.
void AskForBacking(int fd, uint64_t offset, uint64_t bytes);
// Waits until the whole range is in memory and mapped, as far as the system can.
void AwaitBacking(int fd, uint64_t offset, Span<std::byte> range);
// Starts writing modified pages.
void WriteBacking(int fd, uint64_t offset, uint64_t bytes);
// Drops pages that are clean in memory; starts writing the others.
void DropBacking(int fd, uint64_t offset, Span<std::byte> range);

// Releases the blocks and the memory of the whole OS pages in the range; they become zero.
Status DiscardBacking(Span<std::byte> range);

}  // namespace arn
