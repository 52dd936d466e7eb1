// SequenceCache: which pages a sequence's tokens lie in, one table a group. Integers only; it knows
// no tensor and touches no page.
#pragma once

#include <cstdint>

#include "kernels/kv_view.h"
#include "platform/base/layout.h"
#include "platform/base/span.h"
#include "platform/base/status.h"

namespace arn {

// Where the page numbers of the tables and the free lists lie. Made at plan time.
struct SequenceCachePlan {
  Slice tables[kMaxKvGroups];  // u32 [n_pages] each
  Slice free_pages[kMaxKvGroups];
};
Status PlanSequenceCache(Span<const KvGroup> groups, Layout* layout, SequenceCachePlan* out);

class SequenceCache {
 public:
  // All pages free. `groups` outlives the cache; `memory` is what the plan's layout sized.
  void Init(Span<const KvGroup> groups, const SequenceCachePlan& plan, const Memory& memory,
            uint32_t context_tokens);

  uint32_t length() const { return length_; }
  uint32_t capacity() const { return context_tokens_; }

  // Takes the pages that positions length() .. length() + n_tokens - 1 need. kContextFull, with
  // nothing changed, when they do not fit. The length stays; Commit moves it once the tokens' K and
  // V are there.
  Status Reserve(uint32_t n_tokens);
  void Commit(uint32_t n_tokens) { length_ += n_tokens; }
  // Forgets everything; all pages are free again.
  void Reset();

  const PageTable* tables() const { return tables_; }
  // Bytes of the pages in use, over all groups.
  uint64_t UsedBytes() const;

 private:
  struct Pool {
    uint32_t* pages = nullptr;       // the table: page numbers in order of position
    uint32_t* free_pages = nullptr;  // a stack; its top is the next page to take
    uint32_t n_free = 0;
  };

  Span<const KvGroup> groups_;
  Pool pools_[kMaxKvGroups];
  PageTable tables_[kMaxKvGroups];
  uint32_t length_ = 0;
  uint32_t context_tokens_ = 0;
};

}  // namespace arn
