#include "runtime/text/segments.h"

#include <cinttypes>

#include "platform/base/arith.h"
#include "runtime/bundle/bundle_generated.h"

namespace arn {

// Checked again although the caller has checked the ranges: an out-of-bounds read costs too much.
Status SegmentBytes(const fbs::Segment* segment, Span<const std::byte> segments, const char* name,
                    Span<const std::byte>* out, Diag* diag) {
  if (segment == nullptr) return diag->Fail(Status::kBadBundle, "tokenizer.%s is missing", name);
  if (segment->offset() > segments.size() ||
      segment->bytes() > segments.size() - segment->offset()) {
    return diag->Fail(Status::kBadBundle,
                      "tokenizer.%s: %" PRIu64 " bytes at %" PRIu64
                      " exceed the segment area of %zu bytes",
                      name, static_cast<uint64_t>(segment->bytes()),
                      static_cast<uint64_t>(segment->offset()), segments.size());
  }
  *out = segments.subspan(static_cast<size_t>(segment->offset()),
                          static_cast<size_t>(segment->bytes()));
  if (reinterpret_cast<uintptr_t>(out->data()) % alignof(uint64_t) != 0) {
    return diag->Fail(Status::kBadBundle, "tokenizer.%s: offset %" PRIu64 " is not a multiple of 8",
                      name, static_cast<uint64_t>(segment->offset()));
  }
  return Status::kOk;
}

Status SlotMask(uint64_t bytes, uint64_t slot_bytes, const char* name, uint32_t* mask, Diag* diag) {
  const uint64_t slots = bytes / slot_bytes;
  if (bytes % slot_bytes != 0 || !IsPowerOfTwo(slots) || slots > (uint64_t{1} << 31)) {
    return diag->Fail(Status::kBadBundle,
                      "tokenizer.%s has %" PRIu64 " bytes, expected %" PRIu64
                      " times a power of two",
                      name, bytes, slot_bytes);
  }
  *mask = static_cast<uint32_t>(slots - 1);
  return Status::kOk;
}

}  // namespace arn
