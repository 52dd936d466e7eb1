// Layout: the measuring pass. Assigns Slice{region, offset, bytes} before any memory exists; load
// resolves the same slices against real memory. No other code computes sizes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/base/diag.h"
#include "platform/base/result.h"
#include "platform/base/span.h"
#include "platform/base/status.h"

namespace arn {

// Memory regions of a session.
enum class Region : uint8_t {
  kWeights = 0,    // the bundle's segments, mapped read-only; never allocated
  kConstants = 1,  // repacked weights, RoPE tables, steps, page tables, backend and session objects
  kKv = 2,         // KV pages: reserved, committed on first use, never cleared
  kActivations = 3,  // values of one prefill chunk, overlapping by lifetime, and kernel workspace
  kIo = 4,           // tokens, logits, sampler and text scratch
};
inline constexpr uint32_t kRegionCount = 5;
const char* RegionName(Region region);  // "weights", "constants", "kv", "activations", "io"

// Alignment of every slice. At least kOverreadBytes of the same region follow each slice.
inline constexpr uint32_t kSliceAlign = 64;
// SIMD kernels may read (never write) this far past the end of any slice.
inline constexpr uint32_t kOverreadBytes = 128;
// Alignment of regions in a session's block: the largest page size in use on ARM.
inline constexpr uint32_t kRegionAlign = 16384;

struct Slice {
  Region region = Region::kConstants;
  uint64_t offset = 0;  // offset in the region
  uint64_t bytes = 0;
};

class Layout {
 public:
  // Appends `bytes` to `region`. kOutOfMemory if a size exceeds 2^62.
  Result<Slice> Add(Region region, uint64_t bytes, uint64_t align = kSliceAlign);
  // Appends count * element_bytes.
  Result<Slice> AddArray(Region region, uint64_t count, uint64_t element_bytes);
  // Returns the bytes used so far, padded with kOverreadBytes and rounded up to kRegionAlign; 0 if
  // nothing was added.
  uint64_t RegionBytes(Region region) const;

 private:
  uint64_t used_[kRegionCount] = {};
};

// Real memory of the regions. kWeights stays empty: weights are accessed through the bundle.
struct Memory {
  Span<std::byte> region[kRegionCount];

  // REQUIRES: the slice is from the Layout that sized this memory.
  std::byte* At(Slice slice) const {
    return region[static_cast<uint32_t>(slice.region)].data() + slice.offset;
  }
  template <typename T>
  T* As(Slice slice) const {
    return reinterpret_cast<T*>(At(slice));
  }
};

}  // namespace arn
