// The segments of a bundle that a tokenizer's tables lie in.
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

// *out is the segment's bytes, at a multiple of 8. kBadBundle when it is absent, leaves the area
// or lies at another place. `name` is its field's.
Status SegmentBytes(const fbs::Segment* segment, Span<const std::byte> segments, const char* name,
                    Span<const std::byte>* out, Diag* diag);

// *mask is the number of slots less one; kBadBundle unless `bytes` are a power of two of them.
Status SlotMask(uint64_t bytes, uint64_t slot_bytes, const char* name, uint32_t* mask, Diag* diag);

}  // namespace arn
