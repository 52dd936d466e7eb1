// KvCache: assigns the tokens of a session's sequences to pages. One page pool per group of layers,
// one page table per group and sequence. Windows and chunks release pages that no later token
// attends to; forks share pages, and the first write to a shared page copies it. A state group has
// one page (slot) per sequence; a run writes a second one, which becomes the slot at Commit, so
// shared slots are never written, and a snapshot of the states is a reference to their slots.
// Integers only: touches no tensor and no page. Changes of page contents are recorded as edits for
// the backend.
#pragma once

#include <cstdint>

#include "kernels/contract/kv_view.h"
#include "platform/base/layout.h"
#include "platform/base/span.h"
#include "platform/base/status.h"
#include "runtime/cache/cache_group.h"
#include "runtime/cache/page_pool.h"
#include "runtime/cache/row_moves.h"
#include "runtime/cache/state_snapshots.h"

namespace arn {

// Slices of tables, pools and edits, made at plan time. With several sequences there is one extra
// row, used by Reorder.
struct KvCachePlan {
  uint32_t n_groups = 0;
  uint32_t n_sequences = 0;
  uint32_t max_edits = 0;
  CacheGroup groups[kMaxKvGroups];
  PagePool::Plan pools[kMaxKvGroups];
  PagePool::Plan quantised_pools[kMaxKvGroups];
  Slice pages[kMaxKvGroups];    // u32 [rows, table_pages]
  Slice numbers[kMaxKvGroups];  // u32 [n_pages + n_quantised_pages], scratch
  Slice tables;                 // PageTable [rows, n_groups]
  Slice lengths;                // u32 [rows]
  Slice encoder_rows;           // u32 [rows]
  Slice held;                   // HeldState [n_sequences, n_groups] if there are states
  Slice edits;                  // KvEdit [max_edits]
  Slice reorder;                // u32 [2, n_sequences]
  Slice moves;                  // RowMove [MaxRowMoves(n_sequences)]
  StateSnapshots::Plan snapshots;
};
// REQUIRES: groups of states have slots for the snapshots (StateGroupOf).
Status PlanKvCache(Span<const CacheGroup> groups, uint32_t n_sequences,
                   const SnapshotOptions& snapshots, Layout* layout, KvCachePlan* out);

// Tokens to add to a sequence.
struct Growth {
  uint32_t sequence = 0;
  uint32_t n_tokens = 0;
};

// A slot of states that KvCache::HoldStates() keeps.
struct HeldState {
  uint32_t length = 0;  // of the sequence; 0: none is held
  uint32_t slot = 0;
};

class KvCache {
 public:
  // Starts with all sequences empty. REQUIRES: `memory` is sized by the plan's layout.
  void Init(const KvCachePlan& plan, const Memory& memory, uint32_t context_tokens);

  // Maximum tokens of a sequence.
  uint32_t capacity() const { return context_tokens_; }
  uint32_t n_sequences() const { return n_sequences_; }
  uint32_t n_groups() const { return n_groups_; }
  const CacheGroup& group(uint32_t g) const { return groups_[g]; }
  const PagePool& pool(uint32_t g) const { return pools_[g]; }
  const PagePool& quantised_pool(uint32_t g) const { return quantised_pools_[g]; }

  uint32_t length(uint32_t sequence) const { return lengths_[sequence]; }
  // Returns the tables of a sequence, one per group.
  const PageTable* tables(uint32_t sequence) const { return tables_ + sequence * n_groups_; }

  // Reserves pages for the next tokens of distinct sequences. First releases pages that these and
  // all later tokens do not attend to, and quantises pages that are old enough in all sequences
  // that share them. Replaces a shared or quantised page that will be written by a copy (an edit).
  // kContextFull, with no page taken, if a sequence would exceed its capacity or a pool has too few
  // pages. Lengths change only at Commit, once the tokens' K and V are written; Reserve may be
  // repeated after a failed run. Commit keeps a snapshot of the states if a sequence has reached or
  // passed a multiple of their distance.
  Status Reserve(Span<const Growth> growths);
  void Commit(Span<const Growth> growths);
  // Takes the last n tokens back to what they were before Commit: their pages stay reserved, with
  // what was written, until the next Cut(), so that they can be committed again, one by one.
  // REQUIRES: the last run committed them. States stay as they are after it; see HoldStates().
  void Uncommit(uint32_t sequence, uint32_t n) { lengths_[sequence] -= n; }

  // Keeps the states of a sequence, beside those that its next run makes, until one of the calls
  // below. Nothing happens without states. REQUIRES: none are held; until then the sequence runs
  // once.
  void HoldStates(uint32_t sequence);
  // Takes the sequence back to where its states were held: all later tokens are removed.
  void ReturnToHeld(uint32_t sequence);
  void DropHeld(uint32_t sequence);

  // Returns how many tokens can be reserved at once, any of which Cut() can remove, with the same
  // result as reserving one at a time, states aside: those before the next page is quantised.
  uint32_t TokensBeforeQuantising(uint32_t sequence) const;

  // Releases pages that the next tokens do not attend to; first step of Reserve().
  void ReleaseUnseen(uint32_t sequence);

  // Clears a sequence and takes the pages of its encoder output with `rows` rows. Always fits: one
  // per sequence.
  void TakeEncoderRows(uint32_t sequence, uint32_t rows);
  uint32_t encoder_rows(uint32_t sequence) const { return encoder_rows_[sequence]; }

  // Clears a sequence and its encoder output; frees pages without other references.
  void Clear(uint32_t sequence);
  // Makes `to` a copy of `from` that shares all its pages and snapshots. kBadState unless `to` is
  // empty.
  Status Fork(uint32_t from, uint32_t to);
  // Makes sequence first + i a copy of what parents[i] was before the call, for all i at once, by
  // sharing pages. A parent may occur several times and may be any sequence; its reserved but
  // uncommitted tokens are dropped. A sequence that changes has no snapshots then. kBadArgument,
  // with nothing changed, if an index is not a sequence.
  Status Reorder(uint32_t first, Span<const uint32_t> parents);
  // Row copies of the last Reorder, to reorder other per-sequence rows alike. Row n_sequences() is
  // temporary.
  Span<const RowMove> moves() const { return {moves_, n_moves_}; }
  // Removes the tokens from ResumePosition(position) on. kBadState if pages that this position
  // attends to are gone, or if there are states without a snapshot.
  Status Rewind(uint32_t sequence, uint32_t position);
  // Returns the largest position up to `position` that the sequence can continue from without
  // running earlier tokens: `position` itself without states or at the length, else that of the
  // last snapshot before; 0 if there is none.
  uint32_t ResumePosition(uint32_t sequence, uint32_t position) const;
  // Removes the tokens from `position` on, and the snapshots behind it. REQUIRES: position is
  // ResumePosition(position), unless the caller recomputes all tokens in each run.
  void Cut(uint32_t sequence, uint32_t position);
  // True if a sequence of this length can be rewound by one token even after a failed reservation,
  // which has released the pages that the next token does not attend to.
  bool CanRewindFrom(uint32_t length) const;
  // True if the last token can be removed and reserved again, which needs a page if its page is
  // shared. REQUIRES: the sequence is not empty, and Rewind allows it.
  bool CanRepeatLast(uint32_t sequence) const;
  // Returns the smallest position that Rewind allows.
  uint32_t FirstRewindPosition(uint32_t sequence) const;

  // Keeps a snapshot of the sequence's states, as a mark if `is_mark`; gives up another if its
  // slots are full (ChooseSnapshotToDrop). Nothing happens without states, slots or tokens.
  void KeepSnapshot(uint32_t sequence, bool is_mark);
  const StateSnapshots& snapshots() const { return snapshots_; }
  // Returns the tokens that the sequence may append before Commit keeps its next regular snapshot.
  uint32_t TokensToSnapshot(uint32_t sequence) const;

  // Drops the `dropped` tokens after the first `pinned` ones and moves the later ones down, by
  // `unrotated_by` positions of RoPE: one edit per page re-rotates its keys. REQUIRES: both are
  // multiples of ShiftTokens(groups), pinned + dropped <= length. kContextFull, with nothing
  // changed, if shared pages must be copied and the pool has too few.
  Status Shift(uint32_t sequence, uint32_t pinned, uint32_t dropped, uint32_t unrotated_by);

  // Returns the part of a table worth saving: pages with tokens that the last one attends to, which
  // runs again where a sequence has no logits, or the next one.
  PageTable SeenTable(uint32_t sequence, uint32_t g) const;
  // Numbers the pages in the seen tables of sequences [first, end), per page type in order of first
  // appearance; out: counts per type. Afterwards NumberOf(g, page) returns the page's number, with
  // the bit kQuantisedPage if the page has it.
  void NumberPages(uint32_t g, uint32_t first, uint32_t end, uint32_t out[kPageKinds]) const;
  uint32_t NumberOf(uint32_t g, uint32_t page) const {
    return numbers_[g][PageIndex(groups_[g], page)] | (page & kQuantisedPage);
  }
  // u32 [n_pages + n_quantised_pages], by PageIndex: scratch for saving and restoring.
  uint32_t* numbers(uint32_t g) const { return numbers_[g]; }

  // Restores all sequences: BeginRestore clears them and takes the first n_pages[g][kind] pages of
  // each group; then set each sequence's length and, group by group, its table. `entries`: u32
  // [n_pages], unaligned, each below the group's n_pages of its type. REQUIRES: everything fits and
  // every page is in a table.
  void BeginRestore(const uint32_t n_pages[][kPageKinds]);
  void RestoreLength(uint32_t sequence, uint32_t length, uint32_t encoder_rows = 0) {
    lengths_[sequence] = length;
    encoder_rows_[sequence] = encoder_rows;
  }
  void RestoreTable(uint32_t sequence, uint32_t g, uint32_t first_page, uint32_t n_pages,
                    const void* entries);

  // Restores one empty sequence beside others: HasFree checks the free pages, AdoptTable takes new
  // pages in the pools' order. An entry gives only the type of its page.
  bool HasFree(const uint32_t n_pages[][kPageKinds]) const;
  void AdoptTable(uint32_t sequence, uint32_t g, uint32_t first_page, uint32_t n_pages,
                  const void* entries);

  // Edits to apply to the pages, in this order, before the next run reads or writes them.
  Span<const KvEdit> edits() const { return {edits_, n_edits_}; }
  void ClearEdits() { n_edits_ = 0; }

 private:
  PageTable& Table(uint32_t sequence, uint32_t g) { return tables_[sequence * n_groups_ + g]; }
  uint32_t* Pages(uint32_t sequence, uint32_t g) {
    return pages_[g] + uint64_t{sequence} * groups_[g].table_pages;
  }
  void CopyRow(const RowMove& move);
  void DropSnapshot(uint32_t sequence, size_t i);
  void DropSnapshotsBehind(uint32_t sequence, uint32_t position);
  void ShareSnapshots(uint32_t from, uint32_t to);
  // Replaces the sequence's states by those in these slots, one for each state group.
  void UseSlots(uint32_t sequence, const uint32_t* slot);
  // Replaces the sequence's states by those of its last snapshot if that is at `position`.
  void ReturnToSnapshot(uint32_t sequence, uint32_t position);
  KvEdit* AddEdit(uint32_t g, uint32_t from, uint32_t to);
  // Releases the pages after `position`.
  void ReleaseAfter(uint32_t sequence, uint32_t position);
  PagePool& PoolOf(uint32_t g, uint32_t page) {
    return (page & kQuantisedPage) != 0 ? quantised_pools_[g] : pools_[g];
  }
  uint32_t References(uint32_t g, uint32_t page) const;
  void Retain(uint32_t g, uint32_t page) { PoolOf(g, page).Retain(page & ~kQuantisedPage); }
  void Release(uint32_t g, uint32_t page) { PoolOf(g, page).Release(page & ~kQuantisedPage); }
  // Takes another page of the same type. REQUIRES: one is free.
  uint32_t TakeLike(uint32_t g, uint32_t page) {
    return PoolOf(g, page).Take() | (page & kQuantisedPage);
  }
  void ReleaseUnseenOf(uint32_t sequence, uint32_t g);
  // Returns the number of pages in the sequence's table that are old enough to quantise.
  uint32_t OldPages(uint32_t sequence, uint32_t g) const;
  void QuantiseOld(uint32_t g);
  void QuantisePage(uint32_t g, uint32_t page, uint32_t index);
  bool NeedsOwnPage(const Growth& growth, uint32_t g, uint32_t* index) const;
  void DropPages(uint32_t sequence, uint32_t g, uint32_t first, uint32_t last);

  uint32_t n_groups_ = 0;
  uint32_t n_sequences_ = 0;
  uint32_t context_tokens_ = 0;
  uint32_t max_edits_ = 0;
  HeldState* HeldOf(uint32_t sequence) { return held_ + uint64_t{sequence} * n_groups_; }
  uint32_t n_edits_ = 0;
  CacheGroup groups_[kMaxKvGroups];
  PagePool pools_[kMaxKvGroups];
  PagePool quantised_pools_[kMaxKvGroups];
  uint32_t* pages_[kMaxKvGroups] = {};
  uint32_t* numbers_[kMaxKvGroups] = {};
  PageTable* tables_ = nullptr;
  uint32_t* lengths_ = nullptr;
  uint32_t* encoder_rows_ = nullptr;
  HeldState* held_ = nullptr;  // null without states
  KvEdit* edits_ = nullptr;
  uint32_t* reorder_ = nullptr;
  RowMove* moves_ = nullptr;
  uint32_t n_moves_ = 0;
  StateSnapshots snapshots_;
};

}  // namespace arn
