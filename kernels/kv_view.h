// The KV cache as kernels see it: pools of fixed-size pages. A page holds page_tokens tokens of one
// group of layers. Inside a page, per layer of the group, in this order, each block 64-byte
// aligned:
//   K        [n_kv_heads, page_tokens, head_dim]  k_type
//   V        [n_kv_heads, page_tokens, head_dim]  v_type
//   K scale  [n_kv_heads, page_tokens] f32        only when k_type is kInt8
//   V scale  [n_kv_heads, page_tokens] f32        only when v_type is kInt8
// int8 value = round(x / scale), scale = max|x| / 127 over the head_dim elements of one token and
// kv head (0 when they are all 0). K is stored after RoPE.
//
// A group may have a second pool, of sealed pages: what a full page becomes once its tokens are
// old. They have the same four blocks, K or V or both in 4 or 2 bits (the other as in an open
// page):
//   values   [n_kv_heads, page_tokens, row_bytes], row_bytes = ceil(head_dim * bits / 8). The bits
//            [j * bits, (j + 1) * bits) of byte i are the element j * row_bytes + i.
//   scales   f16 pairs (scale, least): x = least + scale * value
//     of K   [n_kv_heads, ceil(page_tokens / group_size), head_dim, 2]: keys have channels that are
//            large in all tokens, so each channel has its own range over group_size tokens
//     of V   [n_kv_heads, page_tokens, ceil(head_dim / group_size), 2]: per token
// (Liu et al., "KIVI: A Tuning-Free Asymmetric 2bit Quantization for KV Cache", 2024.)
//
// A group of layers that keep a state of a fixed size instead of keys and values has slots for
// pages: a slot is one sequence's states after its last token, f32, per layer of the group
// state_floats of them, each layer's 64-byte aligned.
#pragma once

#include <cstdint>

#include "platform/base/dtype.h"
#include "platform/base/layout.h"
#include "platform/base/span.h"

namespace arn {

// Groups a model may have at most.
inline constexpr uint32_t kMaxKvGroups = 16;

// Where the blocks of one kind of page lie. Fixed at plan time. All offsets in bytes.
struct KvPages {
  uint32_t n_pages = 0;
  uint64_t page_bytes = 0;
  uint64_t layer_bytes = 0;     // from one layer's blocks to the next layer's, inside a page
  uint64_t v_offset = 0;        // from the layer's start
  uint64_t k_scale_offset = 0;  // from the layer's start
  uint64_t v_scale_offset = 0;
  Slice pool;  // n_pages * page_bytes in Region::kKv
};

// Kernels are fast where page_tokens is a multiple of this, as it is in what a session plans: so
// many rows of a kv head follow one another, and begin at a multiple of it.
inline constexpr uint32_t kKvStrip = 8;

// Tokens "in a page" of a group of states: more than any sequence has.
inline constexpr uint32_t kStatePageTokens = 1u << 31;

struct KvGroup {
  DType k_type = DType::kF32;  // of open pages: kF32, kF16 or kInt8
  DType v_type = DType::kF32;
  uint32_t n_layers = 0;
  uint32_t n_kv_heads = 0;
  uint32_t head_dim = 0;
  uint32_t page_tokens = 0;  // a power of two; of a source: room for as many as it has at most
  bool is_source = false;    // a page is the source of a sequence, of kinds with sees_source
  KvPages open;
  uint32_t sealed_k_bits = 0;  // 4 or 2; 0: as in an open page
  uint32_t sealed_v_bits = 0;
  uint32_t group_size = 0;  // tokens (K) and channels (V) that share a range; divides page_tokens
  KvPages sealed;           // n_pages 0: no page is ever sealed

  uint32_t state_floats = 0;  // of each layer; 0: the group is one of keys and values

  const KvPages& pages(uint32_t kind) const { return kind == 0 ? open : sealed; }
};

// A page number with this bit names a page of the sealed pool.
inline constexpr uint32_t kSealedPage = 1u << 31;

// The kinds of pages, as indices: 0 open, 1 sealed.
inline constexpr uint32_t kPageKinds = 2;
constexpr uint32_t KindOfPage(uint32_t page) { return page >> 31; }

// One sequence's pages in one group: token position p lives in page pages[p / page_tokens -
// first_page] at slot p % page_tokens. Positions before first_page * page_tokens are gone: no query
// sees them.
//
// In a group of states: pages[0] is the slot with the state before the first of the run's rows, if
// there are tokens before it, and the table's last page is the slot that gets the state after the
// last row. They are never the same one, so that a run that fails leaves the state as it was.
struct PageTable {
  const uint32_t* pages = nullptr;
  uint32_t n_pages = 0;
  uint32_t first_page = 0;
};

// A change to a page outside the steps: page `to` becomes what page `from` is (they may be the same
// one, or of different pools: then it is converted), with its keys turned back by `turned_back`
// positions (as RoPE turns them; 0: not at all). What is converted or turned are the first
// `n_tokens` slots; the others may hold anything.
struct KvEdit {
  uint32_t group = 0;
  uint32_t from = 0;
  uint32_t to = 0;
  uint32_t turned_back = 0;
  uint32_t n_tokens = 0;
};

}  // namespace arn
