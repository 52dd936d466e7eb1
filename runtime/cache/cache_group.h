// What the page planner knows of a group of layers: which positions its tokens can see, and how
// many pages there are. No bytes, no tensors.
#pragma once

#include <cstdint>

#include "platform/base/span.h"

namespace arn {

struct CacheGroup {
  uint32_t page_tokens = 0;  // a power of two
  uint32_t window = 0;       // as AttentionKind
  uint32_t chunk = 0;        // as AttentionKind
  uint32_t table_pages = 0;  // pages that one sequence holds at most
  uint32_t n_pages = 0;      // pages in the pool
};

// Pages that one sequence needs at most, when it has up to context_tokens tokens and a run adds up
// to max_rows: those that can meet a visible interval, for the worst position of its start.
uint32_t TablePages(const CacheGroup& group, uint32_t context_tokens, uint32_t max_rows);

// The smallest position whose query sees nothing before `first_held`.
uint32_t FirstPositionSeeingOnly(const CacheGroup& group, uint32_t first_held);

// Tokens that a shift drops are a multiple of this: whole pages and chunks of every group.
uint64_t ShiftTokens(Span<const CacheGroup> groups);

}  // namespace arn
