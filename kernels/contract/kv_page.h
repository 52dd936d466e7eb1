// Addresses inside the KV pages (layout: kernels/contract/kv_view.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/contract/kv_type.h"
#include "kernels/contract/program.h"
#include "platform/base/arith.h"

namespace arn {

// Base addresses of a group's pools.
struct KvPools {
  std::byte* active = nullptr;
  std::byte* quantised = nullptr;
};
inline KvPools KvPoolsOf(const KvGroup& group, const Memory& memory) {
  return {memory.At(group.active.pool),
          group.quantised.n_pages == 0 ? nullptr : memory.At(group.quantised.pool)};
}

// K or V of one kv head in one layer's part of a page.
struct KvHeadBlock {
  std::byte* values = nullptr;
  void* scales = nullptr;    // f32 for kInt8, f16 pairs for 4 and 2 bits, else null
  DType type = DType::kF32;  // valid if bits is 0
  uint32_t bits = 0;
};
struct KvHeadPage {
  KvHeadBlock k, v;
};

constexpr uint32_t KvRowBytes(uint32_t head_dim, uint32_t bits) {
  return static_cast<uint32_t>(CeilDiv(uint64_t{head_dim} * bits, 8));
}
constexpr uint32_t KvGroupsOf(uint32_t n, uint32_t group_size) {
  return static_cast<uint32_t>(CeilDiv(n, group_size));
}
// Bytes of the values and of the scales of one kv head's block. `keys`: K, else V.
inline uint64_t KvValueBytes(const KvGroup& group, DType type, uint32_t bits) {
  const uint64_t row =
      bits == 0 ? group.head_dim * ElementBytes(type) : KvRowBytes(group.head_dim, bits);
  return row * group.page_tokens;
}
inline uint64_t KvScaleBytes(const KvGroup& group, bool keys, DType type, uint32_t bits) {
  if (bits == 0) return HasRowScales(type) ? group.page_tokens * sizeof(float) : 0;
  const uint64_t pairs =
      group.RangesByChannel(keys)
          ? uint64_t{KvGroupsOf(group.page_tokens, group.group_size)} * group.head_dim
          : uint64_t{group.page_tokens} * KvGroupsOf(group.head_dim, group.group_size);
  return pairs * 2 * sizeof(uint16_t);
}

// Offsets of K or V of one kv head in one layer's part of a page, in bytes from the start of the
// page's pool.
struct KvHeadPlace {
  uint64_t values = 0;
  uint64_t scales = 0;
  uint64_t scale_bytes = 0;  // 0: no scales
  DType type = DType::kF32;  // valid if bits is 0
  uint32_t bits = 0;
};

// Returns the part of `page` that belongs to one layer and kv head. kQuantisedPage may be set in
// `page`.
inline KvHeadPlace KvPlaceAt(const KvGroup& group, bool keys, uint32_t page, uint32_t group_layer,
                             uint32_t kv_head) {
  keys = keys || group.keys_only;
  const bool quantised = (page & kQuantisedPage) != 0;
  const KvPages& pages = quantised ? group.quantised : group.active;
  const uint64_t layer = pages.At(page & ~kQuantisedPage, group_layer);
  KvHeadPlace out;
  out.type = keys ? group.k_type : group.v_type;
  if (quantised) out.bits = keys ? group.quantised_k_bits : group.quantised_v_bits;
  out.values =
      layer + (keys ? 0 : pages.v_offset) + kv_head * KvValueBytes(group, out.type, out.bits);
  out.scale_bytes = KvScaleBytes(group, keys, out.type, out.bits);
  out.scales =
      layer + (keys ? pages.k_scale_offset : pages.v_scale_offset) + kv_head * out.scale_bytes;
  return out;
}

// KvPlaceAt as addresses.
inline KvHeadPage KvPageAt(const KvGroup& group, const KvPools& pools, uint32_t page,
                           uint32_t group_layer, uint32_t kv_head) {
  std::byte* pool = (page & kQuantisedPage) != 0 ? pools.quantised : pools.active;
  auto block = [&](bool keys) {
    const KvHeadPlace place = KvPlaceAt(group, keys, page, group_layer, kv_head);
    void* scales = place.scale_bytes == 0 ? nullptr : pool + place.scales;
    return KvHeadBlock{pool + place.values, scales, place.type, place.bits};
  };
  return {block(true), block(false)};
}

// Returns the page that holds `position`. REQUIRES: the table covers it.
inline uint32_t KvPageOf(const KvGroup& group, const PageTable& table, uint32_t position) {
  return table.pages[position / group.page_tokens - table.first_page];
}

// Returns the first position the mask allows a query at `position` to see; window and chunk as in
// AttentionKind.
inline uint32_t FirstVisible(uint32_t position, uint32_t window, uint32_t chunk) {
  const uint32_t in_window = window == 0 || position < window ? 0 : position - window + 1;
  const uint32_t in_chunk = chunk == 0 ? 0 : position - position % chunk;
  return in_window > in_chunk ? in_window : in_chunk;
}

// Returns the first position of the sequence that a query at `position` attends to: FirstVisible,
// limited to the pages the table still has.
inline uint32_t FirstSeen(uint32_t position, const AttentionKind& kind, const KvGroup& group,
                          const PageTable& table) {
  const uint32_t visible = FirstVisible(position, kind.window, kind.chunk);
  const uint32_t held = table.first_page * group.page_tokens;
  return visible > held ? visible : held;
}

}  // namespace arn
