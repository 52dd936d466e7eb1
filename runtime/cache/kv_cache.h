// KvCache: which pages the tokens of a session's sequences lie in. One pool of pages a group of
// layers, one table a group and sequence. Windows and chunks give pages back once no later token
// sees them; forks share pages and the first write to a shared page copies it. A group of states
// has a page a sequence, its slot; a run writes another one, which is the slot from Commit on, so
// that what is shared is never written to. Integers only: it knows no tensor and touches no page.
// What has to happen to the pages' contents is left as a list of edits for the backend.
#pragma once

#include <cstdint>

#include "kernels/kv_view.h"
#include "platform/base/layout.h"
#include "platform/base/span.h"
#include "platform/base/status.h"
#include "runtime/cache/cache_group.h"
#include "runtime/cache/page_pool.h"
#include "runtime/cache/row_moves.h"

namespace arn {

// Where the tables, pools and edits lie. Made at plan time. Of several sequences there is one row
// more, which Reorder uses.
struct KvCachePlan {
  uint32_t n_groups = 0;
  uint32_t n_sequences = 0;
  uint32_t max_edits = 0;
  CacheGroup groups[kMaxKvGroups];
  PagePool::Plan pools[kMaxKvGroups];
  PagePool::Plan sealed_pools[kMaxKvGroups];
  Slice pages[kMaxKvGroups];    // u32 [rows, table_pages]
  Slice numbers[kMaxKvGroups];  // u32 [n_pages + n_sealed_pages]: scratch
  Slice tables;                 // PageTable [rows, n_groups]
  Slice lengths;                // u32 [rows]
  Slice source_rows;            // u32 [rows]
  Slice edits;                  // KvEdit [max_edits]
  Slice reorder;                // u32 [2, n_sequences]
  Slice moves;                  // RowMove [MaxRowMoves(n_sequences)]
};
Status PlanKvCache(Span<const CacheGroup> groups, uint32_t n_sequences, Layout* layout,
                   KvCachePlan* out);

// Tokens that a sequence is about to get.
struct Growth {
  uint32_t sequence = 0;
  uint32_t n_tokens = 0;
};

class KvCache {
 public:
  // All sequences empty. `memory` is what the plan's layout sized.
  void Init(const KvCachePlan& plan, const Memory& memory, uint32_t context_tokens);

  // Tokens that a sequence may have.
  uint32_t capacity() const { return context_tokens_; }
  uint32_t n_sequences() const { return n_sequences_; }
  uint32_t n_groups() const { return n_groups_; }
  const CacheGroup& group(uint32_t g) const { return groups_[g]; }
  const PagePool& pool(uint32_t g) const { return pools_[g]; }
  const PagePool& sealed_pool(uint32_t g) const { return sealed_pools_[g]; }

  uint32_t length(uint32_t sequence) const { return lengths_[sequence]; }
  // One table a group.
  const PageTable* tables(uint32_t sequence) const { return tables_ + sequence * n_groups_; }

  // Takes the pages for the next tokens of different sequences. Pages that these and all later
  // tokens of a sequence do not see go back to the pool first, and pages that are old enough for
  // all who share them are sealed; a shared or sealed page that is about to be written to is
  // replaced by a copy (an edit). kContextFull, with no page taken, when a sequence would pass its
  // capacity or a pool has too few pages. Lengths stay; Commit moves them once the tokens' K and V
  // are there, and repeating Reserve after a failed run is allowed.
  Status Reserve(Span<const Growth> growths);
  void Commit(Span<const Growth> growths);

  // How many tokens can be reserved at once, and any of them taken back by Cut(), with the result
  // of reserving one at a time: those before the next page is sealed; one when there are states,
  // which cannot be turned back.
  uint32_t TokensBeforeSeal(uint32_t sequence) const;

  // What Reserve() does first: pages that the next tokens do not see go back to the pool.
  void ReleaseUnseen(uint32_t sequence);

  // Forgets a sequence and takes the pages of a new source of so many rows for it. Always fits: a
  // sequence has one.
  void TakeSource(uint32_t sequence, uint32_t rows);
  uint32_t source_rows(uint32_t sequence) const { return source_rows_[sequence]; }

  // Forgets a sequence, its source too; pages that nobody else names are free again.
  void Clear(uint32_t sequence);
  // Makes `to`, which must be empty, a copy of `from` that shares all its pages. kBadState when it
  // is not empty.
  Status Fork(uint32_t from, uint32_t to);
  // Makes sequence first + i what sequence parents[i] was before the call, for all i in one step:
  // they share all its pages, none is copied. A parent may be there several times, and may be any
  // sequence; reserved tokens of parents that were never committed are let go. kBadArgument, with
  // nothing changed, when a number is not a sequence's.
  Status Reorder(uint32_t first, Span<const uint32_t> parents);
  // The copies by which the last Reorder did that, for whoever keeps other rows of the sequences.
  // Row n_sequences() is a spare one.
  Span<const RowMove> moves() const { return {moves_, n_moves_}; }
  // Forgets the tokens from `position` on. kBadState when pages that `position` sees are gone, or
  // when there are states, which cannot be turned back.
  Status Rewind(uint32_t sequence, uint32_t position);
  // Rewind for those who compute all tokens anew in each run: to any position up to the length.
  void Cut(uint32_t sequence, uint32_t position);
  // The smallest position that Rewind allows.
  uint32_t FirstRewindPosition(uint32_t sequence) const;

  // Drops the `dropped` tokens that follow the first `pinned` ones and moves those behind them
  // down: both whole pages of every group (multiples of ShiftTokens(groups)), pinned + dropped <=
  // length. The keys that moved have to be turned: an edit for each of their pages. kContextFull,
  // with nothing changed, when shared pages have to be copied and the pool has too few.
  Status Shift(uint32_t sequence, uint32_t pinned, uint32_t dropped);

  // What is worth keeping of a table: the pages of tokens that the next one can see.
  PageTable SeenTable(uint32_t sequence, uint32_t g) const;
  // Numbers the pages that the first n_sequences' seen tables name, each kind for itself and in the
  // order of their first appearance, and tells how many there are of each kind. NumberOf(g, page)
  // then is the page's number, with the bit kSealedPage where the page has it.
  void NumberPages(uint32_t g, uint32_t n_sequences, uint32_t out[kPageKinds]) const;
  uint32_t NumberOf(uint32_t g, uint32_t page) const {
    return numbers_[g][PageIndex(groups_[g], page)] | (page & kSealedPage);
  }
  // u32 [n_pages + n_sealed_pages]: scratch for whoever saves or restores, by PageIndex.
  uint32_t* numbers(uint32_t g) const { return numbers_[g]; }

  // Restoring: first all sequences are forgotten and each group takes its first n_pages[g][kind]
  // pages; then each sequence gets its length, and group by group its table. `entries`: u32
  // [n_pages], at any alignment, each below the group's n_pages of its kind. The caller has checked
  // that it all fits and that no page is without a table.
  void BeginRestore(const uint32_t n_pages[][kPageKinds]);
  void RestoreLength(uint32_t sequence, uint32_t length) { lengths_[sequence] = length; }
  void RestoreTable(uint32_t sequence, uint32_t g, uint32_t first_page, uint32_t n_pages,
                    const void* entries);

  // The same for one empty sequence, among others: whether there are so many free pages, and its
  // table of pages that are taken now. An entry says of which kind its page is; the pages are new
  // ones, in the pools' order.
  bool HasFree(const uint32_t n_pages[][kPageKinds]) const;
  void AdoptTable(uint32_t sequence, uint32_t g, uint32_t first_page, uint32_t n_pages,
                  const void* entries);

  // What has to be done to the pages, in this order, before the next run reads or writes them.
  Span<const KvEdit> edits() const { return {edits_, n_edits_}; }
  void ClearEdits() { n_edits_ = 0; }

 private:
  PageTable& Table(uint32_t sequence, uint32_t g) { return tables_[sequence * n_groups_ + g]; }
  uint32_t* Pages(uint32_t sequence, uint32_t g) {
    return pages_[g] + uint64_t{sequence} * groups_[g].table_pages;
  }
  void CopyRow(const RowMove& move);
  KvEdit* AddEdit(uint32_t g, uint32_t from, uint32_t to);
  // Gives back the pages behind `position`.
  void ReleaseAfter(uint32_t sequence, uint32_t position);
  PagePool& PoolOf(uint32_t g, uint32_t page) {
    return (page & kSealedPage) != 0 ? sealed_pools_[g] : pools_[g];
  }
  uint32_t References(uint32_t g, uint32_t page) const;
  void Retain(uint32_t g, uint32_t page) { PoolOf(g, page).Retain(page & ~kSealedPage); }
  void Release(uint32_t g, uint32_t page) { PoolOf(g, page).Release(page & ~kSealedPage); }
  // Another page of the same kind. The caller knows that there is one.
  uint32_t TakeLike(uint32_t g, uint32_t page) {
    return PoolOf(g, page).Take() | (page & kSealedPage);
  }
  void ReleaseUnseenOf(uint32_t sequence, uint32_t g);
  // Pages of the sequence's table that are old enough to be sealed.
  uint32_t OldPages(uint32_t sequence, uint32_t g) const;
  void SealOld(uint32_t g);
  void SealPage(uint32_t g, uint32_t page, uint32_t index);
  bool NeedsOwnPage(const Growth& growth, uint32_t g, uint32_t* index) const;
  void DropPages(uint32_t sequence, uint32_t g, uint32_t first, uint32_t last);

  uint32_t n_groups_ = 0;
  uint32_t n_sequences_ = 0;
  uint32_t context_tokens_ = 0;
  uint32_t max_edits_ = 0;
  uint32_t n_edits_ = 0;
  CacheGroup groups_[kMaxKvGroups];
  PagePool pools_[kMaxKvGroups];
  PagePool sealed_pools_[kMaxKvGroups];
  uint32_t* pages_[kMaxKvGroups] = {};
  uint32_t* numbers_[kMaxKvGroups] = {};
  PageTable* tables_ = nullptr;
  uint32_t* lengths_ = nullptr;
  uint32_t* source_rows_ = nullptr;
  KvEdit* edits_ = nullptr;
  uint32_t* reorder_ = nullptr;
  RowMove* moves_ = nullptr;
  uint32_t n_moves_ = 0;
};

}  // namespace arn
