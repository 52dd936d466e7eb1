// Pages from the OS: reserved at once, committed on first touch.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/base/result.h"
#include "platform/base/span.h"

namespace arn {

// Reserves zeroed, writable pages that use physical memory only once touched. `bytes` > 0, rounded
// up to whole pages. kOutOfMemory if address space or OS limits do not allow it.
Result<Span<std::byte>> ReservePages(uint64_t bytes);
// As ReservePages for memory that is read sequentially, in huge pages as far as available. Starts
// at a huge page; the remainder at the end stays in small pages, so that no more than the requested
// bytes are committed.
Result<Span<std::byte>> ReserveHugePages(uint64_t bytes);
// Makes whole pages of the range read-only; writing to them then ends the process.
void ProtectPages(Span<std::byte> range);
// Locks the pages of the range in memory and reads missing ones. kOutOfMemory if the OS does not
// allow it (RLIMIT_MEMLOCK).
Status LockPages(Span<const std::byte> range);
// Releases exactly what a Reserve function returned. An empty span is allowed.
void ReleasePages(Span<std::byte> pages);
// Returns the physical memory of whole pages in the range to the OS; their contents become zero.
Status TrimPages(Span<std::byte> range);
// For a range of a file mapping that is read in few, scattered places: no read-ahead, no huge
// pages.
void ExpectScatteredReads(Span<const std::byte> range);
// Drops whole pages of a range of a read-only file mapping from this process. They are read again
// on use.
void ForgetPages(Span<const std::byte> range);
// Drops the pages that reading `part` may have mapped, as far as they are in `range`, which it is a
// part of: since version 6.18 Linux maps all of a large folio, up to 2 MiB, with a page of it.
void ForgetPagesAround(Span<const std::byte> part, Span<const std::byte> range);

}  // namespace arn
