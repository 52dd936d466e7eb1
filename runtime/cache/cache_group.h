// Group of layers as the page planner sees it: visible positions and page counts. No bytes, no
// tensors.
#pragma once

#include <cstdint>

#include "kernels/contract/kv_view.h"
#include "platform/base/span.h"

namespace arn {

inline constexpr uint32_t kNeverQuantised = UINT32_MAX;

struct CacheGroup {
  bool is_state = false;     // pages are slots of a recurrent state: see PageTable
  bool is_encoder = false;   // cross-attention: one page per sequence, independent of its tokens
  uint32_t page_tokens = 0;  // power of two
  uint32_t window = 0;       // as AttentionKind
  uint32_t chunk = 0;        // as AttentionKind
  // Pages whose tokens are all at least this far back are quantised.
  uint32_t residual = kNeverQuantised;
  uint32_t table_pages = 0;        // maximum pages of one sequence
  uint32_t n_pages = 0;            // active pages in the pool
  uint32_t n_quantised_pages = 0;  // 0: pages are never quantised
};

// Returns the maximum pages of a sequence with up to context_tokens tokens and runs of up to
// max_rows: pages that intersect a visible interval at its worst alignment.
uint32_t TablePages(const CacheGroup& group, uint32_t context_tokens, uint32_t max_rows);

// Maximum of these that are active at once, and that are quantised at once.
uint32_t ActivePages(const CacheGroup& group, uint32_t context_tokens, uint32_t max_rows);
uint32_t QuantisedPages(const CacheGroup& group, uint32_t context_tokens, uint32_t max_rows);

// Sets n_pages and n_quantised_pages to the maximum for n_sequences.
void PlanPools(CacheGroup* group, uint32_t context_tokens, uint32_t max_rows, uint32_t n_sequences);

// Returns a group of slots. Per sequence: its state, the one that a run writes, and those of its
// snapshots.
CacheGroup StateGroupOf(uint32_t n_sequences, uint32_t n_snapshots = 0);

// Returns a cross-attention group: one page per sequence with at least encoder_rows rows.
CacheGroup EncoderGroupOf(uint32_t n_sequences, uint32_t encoder_rows);

// Returns the pages of a table once n_tokens are reserved after `length`.
uint64_t PagesWith(const CacheGroup& group, uint32_t length, uint32_t n_tokens);

// Returns a unique index of a page of either type, below n_pages + n_quantised_pages.
inline uint32_t PageIndex(const CacheGroup& group, uint32_t page) {
  return (page & kQuantisedPage) != 0 ? group.n_pages + (page & ~kQuantisedPage) : page;
}

// Returns the smallest position that a sequence of `length` tokens can continue from: its query
// attends to nothing before `first_held`, or it is the position of the state.
uint32_t FirstPositionToGoOnFrom(const CacheGroup& group, uint32_t first_held, uint32_t length);

// Returns the unit of a shift: whole pages and chunks of every group. REQUIRES: no group of states.
// Ignores cross-attention groups.
uint64_t ShiftTokens(Span<const CacheGroup> groups);

}  // namespace arn
