// Sizes and offsets of a group's KV pages: the byte layout that kernels/kv_view.h describes.
#pragma once

#include <cstdint>

#include "kernels/kv_view.h"
#include "platform/base/diag.h"
#include "platform/base/layout.h"

namespace arn {

struct KvOptions {
  DType dtype = DType::kInt8;
  uint32_t page_tokens = 32;  // a power of two
  uint32_t n_pages = 0;
};

// Fills `out` for n_layers layers of [n_kv_heads, head_dim] and adds its pool of n_pages pages to
// the layout.
Status PlanKvGroup(uint32_t n_layers, uint32_t n_kv_heads, uint32_t head_dim,
                   const KvOptions& options, Layout* layout, KvGroup* out, Diag* diag);

}  // namespace arn
