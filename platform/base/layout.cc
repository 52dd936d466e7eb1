#include "platform/base/layout.h"

#include "platform/base/arith.h"

namespace arn {
namespace {

// Far above any real session; keeps all sums of region sizes free of overflow.
constexpr uint64_t kMaxRegionBytes = uint64_t{1} << 56;

}  // namespace

const char* RegionName(Region region) {
  switch (region) {
    case Region::kWeights: return "weights";
    case Region::kConstants: return "constants";
    case Region::kKv: return "kv";
    case Region::kActivations: return "activations";
    case Region::kIo: return "io";
  }
  return "unknown region";
}

Result<Slice> Layout::Add(Region region, uint64_t bytes, uint64_t align) {
  uint64_t& used = used_[static_cast<uint32_t>(region)];
  if (!IsPowerOfTwo(align) || align > kRegionAlign) return Status::kInternal;
  if (bytes > kMaxRegionBytes) return Status::kOutOfMemory;
  Slice slice;
  slice.region = region;
  slice.offset = AlignUp(used, align < kSliceAlign ? kSliceAlign : align);
  slice.bytes = bytes;
  if (slice.offset + bytes > kMaxRegionBytes) return Status::kOutOfMemory;
  used = slice.offset + bytes;
  return slice;
}

Result<Slice> Layout::AddArray(Region region, uint64_t count, uint64_t element_bytes) {
  uint64_t bytes = 0;
  if (!CheckedMul(count, element_bytes, &bytes)) return Status::kOutOfMemory;
  return Add(region, bytes);
}

uint64_t Layout::RegionBytes(Region region) const {
  const uint64_t used = used_[static_cast<uint32_t>(region)];
  return used == 0 ? 0 : AlignUp(used + kOverreadBytes, kRegionAlign);
}

}  // namespace arn
