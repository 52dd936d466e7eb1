// Sizes and offsets of a group's KV pages, in the byte layout of kernels/contract/kv_view.h.
#pragma once

#include <cstdint>

#include "kernels/contract/kv_view.h"
#include "platform/base/diag.h"
#include "platform/base/layout.h"

namespace arn {

struct KvOptions {
  DType k_type = DType::kInt8;  // active pages: kF32, kF16 or kInt8
  DType v_type = DType::kInt8;
  uint32_t k_bits = 0;  // quantised pages: 4, 2 or 0 (as in active pages)
  uint32_t v_bits = 0;
  uint32_t group_size = 32;  // quantised pages; divides page_tokens
  bool k_by_token = false;   // as in KvGroup
  bool v_by_channel = false;
  uint32_t page_tokens = 32;       // power of two
  uint32_t n_pages = 0;            // active pages
  uint32_t n_quantised_pages = 0;  // 0: pages are never quantised
  bool by_layer = false;           // each layer has its parts of all pages together
  bool keys_only = false;          // no values; v_type is ignored
};

// Fills `out` for n_layers layers of [n_kv_heads, head_dim] and adds the pools to the layout.
Status PlanKvGroup(uint32_t n_layers, uint32_t n_kv_heads, uint32_t head_dim,
                   const KvOptions& options, Layout* layout, KvGroup* out, Diag* diag);

// As above for cross-attention: one page per sequence with room for all encoder rows.
Status PlanEncoderGroup(uint32_t n_layers, uint32_t n_kv_heads, uint32_t head_dim,
                        const KvOptions& options, Layout* layout, KvGroup* out, Diag* diag);

// As above for layers with a state of state_floats floats, in slots.
Status PlanStateGroup(uint32_t n_layers, uint32_t state_floats, uint32_t n_slots, Layout* layout,
                      KvGroup* out, Diag* diag);

}  // namespace arn
