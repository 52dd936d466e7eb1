// Addresses inside the KV pages (kernels/kv_view.h has the layout).
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/program.h"

namespace arn {

// One layer's part of one page, of one kv head.
struct KvHeadPage {
  std::byte* k;    // [page_tokens, head_dim] of the group's dtype
  std::byte* v;    // [page_tokens, head_dim]
  float* k_scale;  // [page_tokens]; null unless the dtype is kInt8
  float* v_scale;
};

// `pool` is where group.pool lies in memory.
inline KvHeadPage KvPageAt(const KvGroup& group, std::byte* pool, uint32_t page,
                           uint32_t group_layer, uint32_t kv_head) {
  std::byte* layer = pool + page * group.page_bytes + group_layer * group.layer_bytes;
  const uint64_t slots = uint64_t{kv_head} * group.page_tokens;
  const uint64_t values = slots * group.head_dim * ElementBytes(group.dtype);
  KvHeadPage out = {layer + values, layer + group.v_offset + values, nullptr, nullptr};
  if (group.dtype == DType::kInt8) {
    out.k_scale = reinterpret_cast<float*>(layer + group.k_scale_offset) + slots;
    out.v_scale = reinterpret_cast<float*>(layer + group.v_scale_offset) + slots;
  }
  return out;
}

// The page that holds `position`. The caller guarantees that the table has it.
inline uint32_t KvPageOf(const KvGroup& group, const PageTable& table, uint32_t position) {
  return table.pages[position / group.page_tokens - table.first_page];
}

// The first position that a query at `position` may see; window and chunk as in AttentionKind.
inline uint32_t FirstVisible(uint32_t position, uint32_t window, uint32_t chunk) {
  const uint32_t in_window = window == 0 || position < window ? 0 : position - window + 1;
  const uint32_t in_chunk = chunk == 0 ? 0 : position - position % chunk;
  return in_window > in_chunk ? in_window : in_chunk;
}

// The first position that a query at `position` sees of a sequence.
inline uint32_t FirstSeen(uint32_t position, const AttentionKind& kind, const KvGroup& group,
                          const PageTable& table) {
  const uint32_t visible = FirstVisible(position, kind.window, kind.chunk);
  const uint32_t held = table.first_page * group.page_tokens;
  return visible > held ? visible : held;
}

}  // namespace arn
