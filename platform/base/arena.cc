#include "platform/base/arena.h"

#include "platform/base/arith.h"

namespace arn {

Result<void*> Arena::Allocate(uint64_t bytes, uint64_t align) {
  if (has_ended_) return Status::kBadState;
  // Aligns the address, not the offset: the memory may be less aligned than the object.
  const uint64_t base = reinterpret_cast<uintptr_t>(memory_.data());
  const uint64_t start = AlignUp(base + used_, align) - base;
  if (start > memory_.size() || bytes > memory_.size() - start) return Status::kOutOfMemory;
  used_ = start + bytes;
  return static_cast<void*>(memory_.data() + start);
}

}  // namespace arn
