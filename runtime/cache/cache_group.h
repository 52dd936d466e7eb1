// What the page planner knows of a group of layers: which positions its tokens can see, and how
// many pages there are. No bytes, no tensors.
#pragma once

#include <cstdint>

#include "kernels/kv_view.h"
#include "platform/base/span.h"

namespace arn {

inline constexpr uint32_t kNeverSealed = UINT32_MAX;

struct CacheGroup {
  bool is_state = false;     // its pages are slots of a state: see PageTable
  bool is_source = false;    // a page is the source of a sequence: taken once, whatever its tokens
  uint32_t page_tokens = 0;  // a power of two
  uint32_t window = 0;       // as AttentionKind
  uint32_t chunk = 0;        // as AttentionKind
  // Pages whose tokens are all at least so far behind are sealed.
  uint32_t residual = kNeverSealed;
  uint32_t table_pages = 0;     // pages that one sequence holds at most
  uint32_t n_pages = 0;         // open pages in the pool
  uint32_t n_sealed_pages = 0;  // 0: none is ever sealed
};

// Pages that one sequence needs at most, when it has up to context_tokens tokens and a run adds up
// to max_rows: those that can meet a visible interval, for the worst position of its start.
uint32_t TablePages(const CacheGroup& group, uint32_t context_tokens, uint32_t max_rows);

// Of those, the ones that may be open at a time, and the ones that may be sealed.
uint32_t OpenPages(const CacheGroup& group, uint32_t context_tokens, uint32_t max_rows);
uint32_t SealedPages(const CacheGroup& group, uint32_t context_tokens, uint32_t max_rows);

// Sets n_pages and n_sealed_pages to what n_sequences need at most.
void PlanPools(CacheGroup* group, uint32_t context_tokens, uint32_t max_rows, uint32_t n_sequences);

// A group of slots: for each sequence the one with its state and the one that a run writes.
CacheGroup StateGroupOf(uint32_t n_sequences);

// A group of sources: one page for each sequence, with room for source_rows rows at least.
CacheGroup SourceGroupOf(uint32_t n_sequences, uint32_t source_rows);

// Pages that a table has once n_tokens are reserved after `length`.
uint64_t PagesWith(const CacheGroup& group, uint32_t length, uint32_t n_tokens);

// A number for each page of both kinds, below n_pages + n_sealed_pages.
inline uint32_t PageIndex(const CacheGroup& group, uint32_t page) {
  return (page & kSealedPage) != 0 ? group.n_pages + (page & ~kSealedPage) : page;
}

// The smallest position that a sequence of `length` tokens can go on from: whose query sees nothing
// before `first_held`, or that the state is of.
uint32_t FirstPositionToGoOnFrom(const CacheGroup& group, uint32_t first_held, uint32_t length);

// Tokens that a shift drops are a multiple of this: whole pages and chunks of every group, none of
// which is one of states. Sources have no part in it.
uint64_t ShiftTokens(Span<const CacheGroup> groups);

}  // namespace arn
