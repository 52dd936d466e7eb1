// Huge pages for memory that is read sequentially: fewer TLB misses. All calls are hints; without
// support small pages remain.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/base/span.h"

namespace arn {

// Returns the huge page size; 0 if the system has none. Reads a file of /sys.
uint64_t HugePageBytes();

// Allows huge pages in the range, which is a file mapping or anonymous: used on first touch, as far
// as the file system or free memory allows.
void AskForHugePages(Span<const std::byte> range);

// Moves [offset, offset + mapped.size()) of an open file, mapped as `mapped`, into huge pages now:
// moves resident pages, or reads the file again if the system cannot do so for it. REQUIRES: no
// byte of `mapped` has been read yet. Takes as long as reading the file.
void MoveToHugePages(int fd, uint64_t offset, Span<const std::byte> mapped);

// Resident memory of a range. Ranges that the system reports together are counted together, so each
// number is capped at the size of the range.
struct PageCounts {
  uint64_t resident_bytes = 0;
  uint64_t huge_bytes = 0;  // resident bytes in huge pages
  uint64_t locked_bytes = 0;
};
// Returns false if the system does not report it (/proc/self/smaps). Takes milliseconds: walks all
// pages of the process. Does not allocate.
bool CountPages(Span<const std::byte> range, PageCounts* out);

}  // namespace arn
