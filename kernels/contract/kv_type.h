// Storage types of keys and values: the one list of them. Names, plans, checks, saved states and
// the command line follow from it. A new type is a row, ARN_KV_..., and kernels for its page type
// or its bits (docs/add_a_kv_type.md).
#pragma once

#include <cstdint>

#include "platform/base/dtype.h"

namespace arn {

// Same numbers as in the C API (ARN_KV_...). Stored in saved states: append only.
enum class KvType : uint32_t { kF32 = 0, kF16 = 1, kInt8 = 2, kInt4 = 3, kInt2 = 4 };

struct KvTypeTraits {
  const char* name;         // of the command line, dumps and messages
  DType active;             // of active pages
  uint32_t quantised_bits;  // of a value in quantised pages; 0: pages are never quantised
  // Default tokens per page, and per range of quantised keys, for keys of this type. Coarser ranges
  // cost int4 little quality and spare attention folding them into the queries; int2 needs finer
  // ones (docs/decisions/0004-kv-pages.md).
  uint32_t page_tokens;
};

// Indexed by KvType.
inline constexpr KvTypeTraits kKvTypes[] = {
    {"f32", DType::kF32, 0, 32},   {"f16", DType::kF16, 0, 32},   {"int8", DType::kInt8, 0, 32},
    {"int4", DType::kInt8, 4, 64}, {"int2", DType::kInt8, 2, 32},
};
inline constexpr uint32_t kKvTypeCount = sizeof kKvTypes / sizeof kKvTypes[0];

constexpr const KvTypeTraits& TraitsOf(KvType type) {
  return kKvTypes[static_cast<uint32_t>(type)];
}
constexpr bool IsQuantised(KvType type) { return TraitsOf(type).quantised_bits != 0; }

// True if some KV type keeps active pages of this type.
constexpr bool IsActivePageType(DType type) {
  for (const KvTypeTraits& traits : kKvTypes) {
    if (traits.active == type) return true;
  }
  return false;
}
// True if some KV type has quantised pages of this many bits a value; 0: pages as active ones.
constexpr bool IsQuantisedPageBits(uint32_t bits) {
  for (const KvTypeTraits& traits : kKvTypes) {
    if (traits.quantised_bits == bits) return true;
  }
  return false;
}

// Active pages of this type have an f32 scale per token and KV head.
constexpr bool HasRowScales(DType active) { return active == DType::kInt8; }

}  // namespace arn
