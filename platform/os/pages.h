// Pages from the OS: reserved at once, committed when they are first touched.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/base/result.h"
#include "platform/base/span.h"

namespace arn {

// Zeroed pages, readable and writable, that cost physical memory only once touched. `bytes` > 0 is
// rounded up to whole pages. kOutOfMemory when the address space or the OS's limits do not allow
// it.
Result<Span<std::byte>> ReservePages(uint64_t bytes);
// Takes back exactly what ReservePages returned. An empty span is allowed.
void ReleasePages(Span<std::byte> pages);
// Gives the physical memory of the whole pages inside the range back to the OS; their contents
// become zero.
Status TrimPages(Span<std::byte> range);

}  // namespace arn
