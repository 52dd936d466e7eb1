// Sizes and offsets of a group's KV pages: the byte layout that kernels/kv_view.h describes.
#pragma once

#include <cstdint>

#include "kernels/kv_view.h"
#include "platform/base/diag.h"
#include "platform/base/layout.h"

namespace arn {

struct KvOptions {
  DType k_type = DType::kInt8;  // of open pages: kF32, kF16 or kInt8
  DType v_type = DType::kInt8;
  uint32_t k_bits = 0;  // of sealed pages: 4, 2 or 0 (as in open ones)
  uint32_t v_bits = 0;
  uint32_t group_size = 32;     // of sealed pages; divides page_tokens
  uint32_t page_tokens = 32;    // a power of two
  uint32_t n_pages = 0;         // open
  uint32_t n_sealed_pages = 0;  // 0: pages are never sealed
};

// Fills `out` for n_layers layers of [n_kv_heads, head_dim] and adds its pools to the layout.
Status PlanKvGroup(uint32_t n_layers, uint32_t n_kv_heads, uint32_t head_dim,
                   const KvOptions& options, Layout* layout, KvGroup* out, Diag* diag);

// The same for what layers have of a source: a page for each sequence, with room for all rows.
Status PlanSourceGroup(uint32_t n_layers, uint32_t n_kv_heads, uint32_t head_dim,
                       const KvOptions& options, Layout* layout, KvGroup* out, Diag* diag);

// The same for layers with a state of so many floats, in slots.
Status PlanStateGroup(uint32_t n_layers, uint32_t state_floats, uint32_t n_slots, Layout* layout,
                      KvGroup* out, Diag* diag);

}  // namespace arn
