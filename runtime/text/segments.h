// Access to a tokenizer's segments in a bundle.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/base/diag.h"
#include "platform/base/span.h"
#include "platform/base/status.h"

namespace arn {

namespace fbs {
struct Segment;
}

// Returns the segment's bytes, aligned to 8. kBadBundle if it is absent, out of bounds or
// misaligned. `name` is the field's name.
Status SegmentBytes(const fbs::Segment* segment, Span<const std::byte> segments, const char* name,
                    Span<const std::byte>* out, Diag* diag);

// *mask: number of slots - 1. kBadBundle unless `bytes` is a power of two of slots.
Status SlotMask(uint64_t bytes, uint64_t slot_bytes, const char* name, uint32_t* mask, Diag* diag);

}  // namespace arn
