// The KV cache as kernels see it: pools of fixed-size pages. A page holds page_tokens tokens of one
// group of layers. Inside a page, per layer of the group, in this order, each block 64-byte
// aligned:
//   K        [n_kv_heads, page_tokens, head_dim]  dtype
//   V        [n_kv_heads, page_tokens, head_dim]  dtype
//   K scale  [n_kv_heads, page_tokens] f32        only when dtype is kInt8
//   V scale  [n_kv_heads, page_tokens] f32        only when dtype is kInt8
// int8 value = round(x / scale), scale = max|x| / 127 over the head_dim elements of one token and
// kv head (0 when they are all 0). K is stored after RoPE.
#pragma once

#include <cstdint>

#include "platform/base/dtype.h"
#include "platform/base/layout.h"
#include "platform/base/span.h"

namespace arn {

// Groups a model may have at most.
inline constexpr uint32_t kMaxKvGroups = 16;

// Fixed at plan time. All offsets in bytes.
struct KvGroup {
  DType dtype = DType::kF32;  // kF32, kF16 or kInt8
  uint32_t n_layers = 0;
  uint32_t n_kv_heads = 0;
  uint32_t head_dim = 0;
  uint32_t page_tokens = 0;  // a power of two
  uint32_t n_pages = 0;
  uint64_t page_bytes = 0;
  uint64_t layer_bytes = 0;     // from one layer's blocks to the next layer's, inside a page
  uint64_t v_offset = 0;        // from the layer's start
  uint64_t k_scale_offset = 0;  // from the layer's start
  uint64_t v_scale_offset = 0;
  Slice pool;  // n_pages * page_bytes in Region::kKv
};

// One sequence's pages in one group: token position p lives in page pages[p / page_tokens -
// first_page] at slot p % page_tokens. Positions before first_page * page_tokens are gone: no query
// sees them.
struct PageTable {
  const uint32_t* pages = nullptr;
  uint32_t n_pages = 0;
  uint32_t first_page = 0;
};

// A change to a page outside the steps: page `to` becomes what page `from` is (they may be the same
// one), with the keys of its first `n_tokens` slots turned back by `turned_back` positions (as RoPE
// turns them; 0: not at all).
struct KvEdit {
  uint32_t group = 0;
  uint32_t from = 0;
  uint32_t to = 0;
  uint32_t turned_back = 0;
  uint32_t n_tokens = 0;
};

}  // namespace arn
