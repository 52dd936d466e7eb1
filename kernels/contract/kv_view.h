// Layout of the KV cache: pools of fixed-size pages. A page holds page_tokens tokens of one group
// of layers. Its layers are contiguous, or, in a file, each layer has its parts of all pages
// together, so that one attention step reads one piece of the file. Inside a page, per layer of
// the group, in this order, each block 64-byte aligned:
//   K        [n_kv_heads, page_tokens, head_dim]  k_type
//   V        [n_kv_heads, page_tokens, head_dim]  v_type
//   K scale  [n_kv_heads, page_tokens] f32        only when k_type is kInt8
//   V scale  [n_kv_heads, page_tokens] f32        only when v_type is kInt8
// A group with keys_only has no V and V scale: its values are its keys.
// int8 value = round(x / scale), scale = max|x| / 127 over the head_dim elements of one token and
// kv head (0 if all of them are 0). K is stored after RoPE.
//
// A group may have a second pool, of quantised pages: full pages are converted to it once their
// tokens are old. They have the same four blocks, with K or V or both in 4 or 2 bits
// (the other as in an active page):
//   values   [n_kv_heads, page_tokens, row_bytes], row_bytes = ceil(head_dim * bits / 8). The bits
//            [j * bits, (j + 1) * bits) of byte i are the element j * row_bytes + i.
//   scales   f16 pairs (scale, least): x = least + scale * value
//     of K   [n_kv_heads, ceil(page_tokens / group_size), head_dim, 2]: outlier channels of keys
//     are
//            large in all tokens, so each channel has its own range over group_size tokens
//     of V   [n_kv_heads, page_tokens, ceil(head_dim / group_size), 2]: per token
// (Liu et al., "KIVI: A Tuning-Free Asymmetric 2bit Quantization for KV Cache", 2024.)
// k_by_token gives the keys the ranges of V, v_by_channel the values those of K.
//
// A group of layers with a fixed-size state instead of keys and values (convolution, SSM) has slots
// instead of pages. A slot holds one sequence's states after its last token: state_floats f32 per
// layer of the group, each layer's 64-byte aligned.
#pragma once

#include <cstdint>

#include "platform/base/dtype.h"
#include "platform/base/layout.h"
#include "platform/base/span.h"

namespace arn {

// Maximum number of groups per model.
inline constexpr uint32_t kMaxKvGroups = 16;

// True if pages can be in a file, layer by layer (ARENITE_KV_FILE).
#ifdef ARENITE_NO_KV_FILE
inline constexpr bool kHasKvFiles = false;
#else
inline constexpr bool kHasKvFiles = true;
#endif

// Offsets of the blocks in one type of page, in bytes. Fixed at plan time.
struct KvPages {
  uint32_t n_pages = 0;
  uint64_t page_bytes = 0;      // of all layers
  uint64_t layer_bytes = 0;     // of one layer's blocks
  uint64_t page_stride = 0;     // from a page to the next one
  uint64_t layer_stride = 0;    // from one layer's blocks to the next layer's, of the same page
  uint64_t v_offset = 0;        // from the layer's start
  uint64_t k_scale_offset = 0;  // from the layer's start
  uint64_t v_scale_offset = 0;
  Slice pool;  // in Region::kKv: n_pages * page_bytes, or more where they lie layer by layer

  // Where a layer's blocks of a page begin, from the start of the pool.
  uint64_t At(uint32_t page, uint32_t layer) const {
    return page * page_stride + layer * layer_stride;
  }
  // A page is so many pieces of equal size: one, or one for each layer where layers lie apart.
  uint32_t n_pieces() const {
    return !kHasKvFiles || layer_stride == layer_bytes
               ? 1
               : static_cast<uint32_t>(page_bytes / layer_bytes);
  }
  Slice Piece(uint32_t page, uint32_t i) const {
    return {Region::kKv, pool.offset + At(page, i), page_bytes / n_pieces()};
  }
};

// Kernels are fastest when page_tokens is a multiple of this, which every planned session ensures:
// this many rows of a kv head are then contiguous and start at a multiple of it.
inline constexpr uint32_t kKvStrip = 8;

// page_tokens of a group of states: longer than any sequence.
inline constexpr uint32_t kStatePageTokens = 1u << 31;

struct KvGroup {
  DType k_type = DType::kF32;  // of active pages: kF32, kF16 or kInt8
  DType v_type = DType::kF32;
  uint32_t n_layers = 0;
  uint32_t n_kv_heads = 0;
  uint32_t head_dim = 0;
  bool keys_only = false;    // the keys are the values too; never quantised
  uint32_t page_tokens = 0;  // a power of two; for an encoder group, the maximum number of encoder
                             // rows
  bool is_encoder = false;   // a page holds one sequence's encoder K and V, for cross-attention
                             // kinds (is_cross_attention)
  KvPages active;
  uint32_t quantised_k_bits = 0;  // 4 or 2; 0: as in an active page
  uint32_t quantised_v_bits = 0;
  uint32_t group_size = 0;  // tokens of a channel, or channels of a token, that share a range;
                            // divides page_tokens
  bool k_by_token = false;
  bool v_by_channel = false;
  KvPages quantised;  // n_pages 0: pages are never quantised

  uint32_t state_floats = 0;  // per layer; 0: the group holds keys and values

  // True if quantised keys (or values) have a range per channel, else per token.
  bool RangesByChannel(bool keys) const { return keys ? !k_by_token : v_by_channel; }
  bool HasDefaultRanges() const { return !k_by_token && !v_by_channel; }

  const KvPages& pages(uint32_t kind) const { return kind == 0 ? active : quantised; }
};

// Set in the number of a page of the quantised pool.
inline constexpr uint32_t kQuantisedPage = 1u << 31;

// Types of pages, as indices: 0 active, 1 quantised.
inline constexpr uint32_t kPageKinds = 2;
constexpr uint32_t KindOfPage(uint32_t page) { return page >> 31; }

// One sequence's pages in one group: token position p is in page pages[p / page_tokens -
// first_page] at slot p % page_tokens. Positions before first_page * page_tokens have been evicted:
// no query attends to them.
//
// In a group of states, pages[0] is the slot with the state before the run's first row, if the
// sequence has earlier tokens. The last page is the slot that receives the state after the last
// row. The two always differ, so a failed run leaves the state unchanged.
struct PageTable {
  const uint32_t* pages = nullptr;
  uint32_t n_pages = 0;
  uint32_t first_page = 0;
};

// An edit of a page outside the steps: copies page `from` to page `to`. The two may be equal, or in
// different pools, which converts the page. `unrotated_by`: un-rotates the keys (RoPE) by this many
// positions; 0: keys are copied unchanged. Conversion and un-rotation apply to the first `n_tokens`
// slots; the other slots are undefined.
struct KvEdit {
  uint32_t group = 0;
  uint32_t from = 0;
  uint32_t to = 0;
  uint32_t unrotated_by = 0;
  uint32_t n_tokens = 0;
};

}  // namespace arn
