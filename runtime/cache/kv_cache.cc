#include "runtime/cache/kv_cache.h"

#include <cstring>

#include "kernels/contract/kv_page.h"
#include "platform/base/arith.h"

namespace arn {
namespace {

// A single sequence can only continue from itself and needs no temporary row.
uint32_t RowsOf(uint32_t n_sequences) { return n_sequences + (n_sequences > 1 ? 1 : 0); }

}  // namespace

Status PlanKvCache(Span<const CacheGroup> groups, uint32_t n_sequences,
                   const SnapshotOptions& snapshots, Layout* layout, KvCachePlan* out) {
  *out = KvCachePlan();
  if (groups.size() > kMaxKvGroups) return Status::kInternal;
  out->n_groups = static_cast<uint32_t>(groups.size());
  out->n_sequences = n_sequences;
  const uint64_t rows = RowsOf(n_sequences);
  uint64_t tables = 0, pages_of_one = 0, quantisable = 0;
  uint32_t n_state_groups = 0;
  for (size_t g = 0; g < groups.size(); ++g) {
    out->groups[g] = groups[g];
    const uint64_t entries = groups[g].table_pages * rows;
    ARN_ASSIGN(out->pages[g], layout->AddArray(Region::kConstants, entries, sizeof(uint32_t)));
    ARN_ASSIGN(out->numbers[g],
               layout->AddArray(Region::kConstants,
                                uint64_t{groups[g].n_pages} + groups[g].n_quantised_pages,
                                sizeof(uint32_t)));
    ARN_ASSIGN(out->pools[g], PagePool::MakePlan(groups[g].n_pages, layout));
    if (groups[g].n_quantised_pages != 0) {
      ARN_ASSIGN(out->quantised_pools[g], PagePool::MakePlan(groups[g].n_quantised_pages, layout));
      quantisable += entries;
    }
    tables += n_sequences;
    n_state_groups += groups[g].is_state ? 1 : 0;
    pages_of_one += groups[g].table_pages;
  }
  // A reservation quantises old pages and copies at most one per table, and a failed one may leave
  // its edits; a shift edits all pages of one sequence.
  const uint64_t edits = quantisable + Max(tables, pages_of_one);
  if (edits > UINT32_MAX) return Status::kOutOfMemory;
  out->max_edits = static_cast<uint32_t>(edits);
  ARN_ASSIGN(out->tables,
             layout->AddArray(Region::kConstants, rows * groups.size(), sizeof(PageTable)));
  ARN_ASSIGN(out->lengths, layout->AddArray(Region::kConstants, rows, sizeof(uint32_t)));
  ARN_ASSIGN(out->encoder_rows, layout->AddArray(Region::kConstants, rows, sizeof(uint32_t)));
  if (n_state_groups != 0) {
    ARN_ASSIGN(out->held, layout->AddArray(Region::kConstants, n_sequences * groups.size(),
                                           sizeof(HeldState)));
  }
  ARN_ASSIGN(out->reorder,
             layout->AddArray(Region::kConstants, 2 * uint64_t{n_sequences}, sizeof(uint32_t)));
  ARN_ASSIGN(out->moves,
             layout->AddArray(Region::kConstants, MaxRowMoves(n_sequences), sizeof(RowMove)));
  ARN_ASSIGN(out->edits, layout->AddArray(Region::kConstants, edits, sizeof(KvEdit)));
  return StateSnapshots::MakePlan(snapshots, n_state_groups, n_sequences, layout, &out->snapshots);
}

void KvCache::Init(const KvCachePlan& plan, const Memory& memory, uint32_t context_tokens) {
  n_groups_ = plan.n_groups;
  n_sequences_ = plan.n_sequences;
  context_tokens_ = context_tokens;
  max_edits_ = plan.max_edits;
  n_edits_ = 0;
  tables_ = memory.As<PageTable>(plan.tables);
  lengths_ = memory.As<uint32_t>(plan.lengths);
  encoder_rows_ = memory.As<uint32_t>(plan.encoder_rows);
  held_ = plan.held.bytes == 0 ? nullptr : memory.As<HeldState>(plan.held);
  for (size_t i = 0; held_ != nullptr && i < size_t{n_sequences_} * n_groups_; ++i) held_[i] = {};
  edits_ = memory.As<KvEdit>(plan.edits);
  reorder_ = memory.As<uint32_t>(plan.reorder);
  moves_ = memory.As<RowMove>(plan.moves);
  n_moves_ = 0;
  snapshots_.Init(plan.snapshots, memory, n_sequences_);
  for (uint32_t g = 0; g < n_groups_; ++g) {
    groups_[g] = plan.groups[g];
    pools_[g].Init(plan.pools[g], memory, groups_[g].n_pages);
    if (groups_[g].n_quantised_pages != 0) {
      quantised_pools_[g].Init(plan.quantised_pools[g], memory, groups_[g].n_quantised_pages);
    }
    pages_[g] = memory.As<uint32_t>(plan.pages[g]);
    numbers_[g] = memory.As<uint32_t>(plan.numbers[g]);
    for (uint32_t s = 0; s < RowsOf(n_sequences_); ++s) {
      Table(s, g) = PageTable();
      Table(s, g).pages = Pages(s, g);
    }
  }
  for (uint32_t s = 0; s < n_sequences_; ++s) lengths_[s] = encoder_rows_[s] = 0;
}

KvEdit* KvCache::AddEdit(uint32_t g, uint32_t from, uint32_t to) {
  KvEdit& edit = edits_[n_edits_++];
  edit = KvEdit();
  edit.group = g;
  edit.from = from;
  edit.to = to;
  return &edit;
}

void KvCache::ReleaseAfter(uint32_t sequence, uint32_t position) {
  for (uint32_t g = 0; g < n_groups_; ++g) {
    if (groups_[g].is_encoder) continue;
    PageTable& table = Table(sequence, g);
    const uint64_t pages = CeilDiv(position, groups_[g].page_tokens);
    while (table.n_pages > 0 && uint64_t{table.first_page} + table.n_pages > pages) {
      Release(g, table.pages[--table.n_pages]);
    }
    if (pages == 0) table.first_page = 0;  // pages dropped by a window no longer matter
  }
}

// Removes entries [first, last) of a table.
void KvCache::DropPages(uint32_t sequence, uint32_t g, uint32_t first, uint32_t last) {
  PageTable& table = Table(sequence, g);
  uint32_t* pages = Pages(sequence, g);
  for (uint32_t i = first; i < last; ++i) Release(g, pages[i]);
  for (uint32_t i = last; i < table.n_pages; ++i) pages[i - (last - first)] = pages[i];
  table.n_pages -= last - first;
}

void KvCache::ReleaseUnseenOf(uint32_t sequence, uint32_t g) {
  const CacheGroup& group = groups_[g];
  PageTable& table = Table(sequence, g);
  const uint32_t first_page =
      FirstVisible(lengths_[sequence], group.window, group.chunk) / group.page_tokens;
  if (first_page <= table.first_page) return;
  const uint32_t unseen = Min(first_page - table.first_page, table.n_pages);
  DropPages(sequence, g, 0, unseen);
  table.first_page = first_page;
}

void KvCache::ReleaseUnseen(uint32_t sequence) {
  for (uint32_t g = 0; g < n_groups_; ++g) ReleaseUnseenOf(sequence, g);
}

uint32_t KvCache::References(uint32_t g, uint32_t page) const {
  const PagePool& pool = (page & kQuantisedPage) != 0 ? quantised_pools_[g] : pools_[g];
  return pool.References(page & ~kQuantisedPage);
}

uint32_t KvCache::OldPages(uint32_t sequence, uint32_t g) const {
  const CacheGroup& group = groups_[g];
  const PageTable& table = tables(sequence)[g];
  if (lengths_[sequence] <= group.residual) return 0;
  const uint32_t end = (lengths_[sequence] - group.residual) / group.page_tokens;
  return Min(end - Min(end, table.first_page), table.n_pages);
}

// Quantising a page for some of its sequences would keep it twice, so it waits until it is old in
// all. A shared page has the same index in every table: a shift copies what it moves.
void KvCache::QuantisePage(uint32_t g, uint32_t page, uint32_t index) {
  auto place = [&](uint32_t s) { return index - Table(s, g).first_page; };
  auto names = [&](uint32_t s) {
    return index >= Table(s, g).first_page && place(s) < Table(s, g).n_pages &&
           Pages(s, g)[place(s)] == page;
  };
  for (uint32_t s = 0; s < n_sequences_; ++s) {
    if (names(s) && place(s) >= OldPages(s, g)) return;
  }
  const uint32_t quantised = quantised_pools_[g].Take() | kQuantisedPage;
  AddEdit(g, page, quantised)->n_tokens = groups_[g].page_tokens;
  bool first = true;
  for (uint32_t s = 0; s < n_sequences_; ++s) {
    if (!names(s)) continue;
    Pages(s, g)[place(s)] = quantised;
    if (!first) Retain(g, quantised);
    first = false;
    Release(g, page);
  }
}

void KvCache::QuantiseOld(uint32_t g) {
  if (groups_[g].n_quantised_pages == 0) return;
  for (uint32_t s = 0; s < n_sequences_; ++s) {
    const PageTable& table = Table(s, g);
    for (uint32_t i = 0; i < OldPages(s, g); ++i) {
      const bool is_active = (table.pages[i] & kQuantisedPage) == 0;
      const bool room = quantised_pools_[g].n_free() > 0 && n_edits_ < max_edits_;
      if (is_active && room) QuantisePage(g, table.pages[i], table.first_page + i);
    }
  }
}

uint32_t KvCache::TokensBeforeQuantising(uint32_t sequence) const {
  const uint32_t length = lengths_[sequence];
  uint32_t tokens = UINT32_MAX;
  for (uint32_t g = 0; g < n_groups_; ++g) {
    const CacheGroup& group = groups_[g];
    if (group.n_quantised_pages == 0) continue;
    // The reservation at this length quantises what is old now; the next page is old once all its
    // tokens are.
    const uint64_t pages =
        length < group.residual ? 0 : (length - group.residual) / group.page_tokens;
    const uint64_t next = group.residual + (pages + 1) * group.page_tokens;
    tokens = static_cast<uint32_t>(Min<uint64_t>(tokens, next - length));
  }
  return tokens;
}

// True if the first new token goes into a page that must not be written: shared or quantised.
// *index is its position in the table.
bool KvCache::NeedsOwnPage(const Growth& growth, uint32_t g, uint32_t* index) const {
  // A run writes its own slot, and never writes cross-attention pages.
  if (groups_[g].is_state || groups_[g].is_encoder) return false;
  const PageTable& table = tables(growth.sequence)[g];
  const uint32_t number = lengths_[growth.sequence] / groups_[g].page_tokens;
  *index = number - table.first_page;
  if (growth.n_tokens == 0 || *index >= table.n_pages) return false;
  const uint32_t page = table.pages[*index];
  return (page & kQuantisedPage) != 0 || References(g, page) > 1;
}

Status KvCache::Reserve(Span<const Growth> growths) {
  for (const Growth& growth : growths) {
    if (growth.n_tokens > context_tokens_ - lengths_[growth.sequence]) return Status::kContextFull;
  }
  for (uint32_t g = 0; g < n_groups_; ++g) {
    for (const Growth& growth : growths) ReleaseUnseenOf(growth.sequence, g);
    QuantiseOld(g);
  }
  const uint32_t edits_before = n_edits_;
  if (edits_before + uint64_t{growths.size()} * n_groups_ > max_edits_) return Status::kInternal;
  bool fits = true;
  for (uint32_t g = 0; g < n_groups_ && fits; ++g) {
    // Counts first. A table that will get a copy releases its page here, so that the last table
    // that shares it keeps it.
    uint64_t needed = 0;
    for (const Growth& growth : growths) {
      const PageTable& table = Table(growth.sequence, g);
      const uint64_t held = uint64_t{table.first_page} + table.n_pages;
      const uint64_t pages = PagesWith(groups_[g], lengths_[growth.sequence], growth.n_tokens);
      if (pages > held) needed += pages - held;
      uint32_t index = 0;
      if (NeedsOwnPage(growth, g, &index)) {
        const uint32_t page = table.pages[index];
        // `to` holds the sequence until all groups fit, then the page.
        AddEdit(g, page, growth.sequence)->n_tokens = groups_[g].page_tokens;
        if ((page & kQuantisedPage) == 0) Release(g, page);
        ++needed;
      }
    }
    fits = needed <= pools_[g].n_free();
  }
  if (!fits) {
    for (; n_edits_ > edits_before; --n_edits_) {
      const KvEdit& edit = edits_[n_edits_ - 1];
      if ((edit.from & kQuantisedPage) == 0) Retain(edit.group, edit.from);
    }
    return Status::kContextFull;
  }
  for (uint32_t i = edits_before; i < n_edits_; ++i) {
    KvEdit& edit = edits_[i];
    const uint32_t sequence = edit.to;
    const uint32_t index = lengths_[sequence] / groups_[edit.group].page_tokens -
                           Table(sequence, edit.group).first_page;
    if ((edit.from & kQuantisedPage) != 0) Release(edit.group, edit.from);
    edit.to = Pages(sequence, edit.group)[index] = pools_[edit.group].Take();
  }
  for (uint32_t g = 0; g < n_groups_; ++g) {
    for (const Growth& growth : growths) {
      PageTable& table = Table(growth.sequence, g);
      const uint64_t pages = PagesWith(groups_[g], lengths_[growth.sequence], growth.n_tokens);
      while (uint64_t{table.first_page} + table.n_pages < pages) {
        Pages(growth.sequence, g)[table.n_pages++] = pools_[g].Take();
      }
    }
  }
  return Status::kOk;
}

void KvCache::Commit(Span<const Growth> growths) {
  for (const Growth& growth : growths) {
    const uint32_t to_snapshot = TokensToSnapshot(growth.sequence);
    lengths_[growth.sequence] += growth.n_tokens;
    for (uint32_t g = 0; g < n_groups_; ++g) {
      if (!groups_[g].is_state || Table(growth.sequence, g).n_pages < 2) continue;
      DropPages(growth.sequence, g, 0, 1);  // slot before the run
    }
    if (growth.n_tokens >= to_snapshot) KeepSnapshot(growth.sequence, false);
  }
}

void KvCache::Clear(uint32_t sequence) {
  DropSnapshotsBehind(sequence, 0);
  for (uint32_t g = 0; g < n_groups_; ++g) {
    PageTable& table = Table(sequence, g);
    // Last first: the pool is a stack, so this keeps the order of pages.
    for (uint32_t i = table.n_pages; i > 0; --i) Release(g, table.pages[i - 1]);
    table.n_pages = 0;
    table.first_page = 0;
  }
  lengths_[sequence] = encoder_rows_[sequence] = 0;
}

void KvCache::TakeEncoderRows(uint32_t sequence, uint32_t rows) {
  Clear(sequence);
  encoder_rows_[sequence] = rows;
  for (uint32_t g = 0; g < n_groups_; ++g) {
    if (!groups_[g].is_encoder) continue;
    PageTable& table = Table(sequence, g);
    Pages(sequence, g)[0] = pools_[g].Take();
    table.n_pages = 1;
  }
}

Status KvCache::Fork(uint32_t from, uint32_t to) {
  if (from == to || lengths_[to] != 0) return Status::kBadState;
  Clear(to);  // may hold pages that were reserved but never committed
  lengths_[to] = lengths_[from];
  encoder_rows_[to] = encoder_rows_[from];
  for (uint32_t g = 0; g < n_groups_; ++g) {
    const PageTable& source = Table(from, g);
    PageTable& table = Table(to, g);
    const uint64_t pages =
        groups_[g].is_encoder ? source.n_pages : CeilDiv(lengths_[from], groups_[g].page_tokens);
    table.first_page = source.first_page;
    table.n_pages = pages <= source.first_page
                        ? 0
                        : Min(source.n_pages, static_cast<uint32_t>(pages) - source.first_page);
    for (uint32_t i = 0; i < table.n_pages; ++i) {
      Pages(to, g)[i] = source.pages[i];
      Retain(g, source.pages[i]);
    }
  }
  ShareSnapshots(from, to);
  return Status::kOk;
}

void KvCache::CopyRow(const RowMove& move) {
  for (uint32_t g = 0; g < n_groups_; ++g) {
    const PageTable& source = Table(move.from, g);
    PageTable& table = Table(move.to, g);
    table.first_page = source.first_page;
    table.n_pages = source.n_pages;
    std::memcpy(Pages(move.to, g), source.pages, source.n_pages * sizeof(uint32_t));
  }
  lengths_[move.to] = lengths_[move.from];
  encoder_rows_[move.to] = encoder_rows_[move.from];
}

Status KvCache::Reorder(uint32_t first, Span<const uint32_t> parents) {
  if (first > n_sequences_ || parents.size() > n_sequences_ - first) return Status::kBadArgument;
  for (uint32_t parent : parents) {
    if (parent >= n_sequences_) return Status::kBadArgument;
  }
  n_moves_ = OrderRowMoves(first, parents, n_sequences_, reorder_, reorder_ + n_sequences_, moves_);
  for (uint32_t i = 0; i < parents.size(); ++i) {
    const uint32_t parent = parents[i];
    if (parent == first + i) continue;
    ReleaseAfter(parent, lengths_[parent]);
    for (uint32_t g = 0; g < n_groups_; ++g) {
      const PageTable& table = Table(parent, g);
      for (uint32_t k = 0; k < table.n_pages; ++k) Retain(g, table.pages[k]);
    }
  }
  // All parents are retained by now, so no page in use is freed in between.
  for (uint32_t i = 0; i < parents.size(); ++i) {
    if (parents[i] == first + i) continue;
    DropSnapshotsBehind(first + i, 0);
    for (uint32_t g = 0; g < n_groups_; ++g) {
      const PageTable& table = Table(first + i, g);
      for (uint32_t k = table.n_pages; k > 0; --k) Release(g, table.pages[k - 1]);
    }
  }
  for (uint32_t i = 0; i < n_moves_; ++i) CopyRow(moves_[i]);
  return Status::kOk;
}

uint32_t KvCache::FirstRewindPosition(uint32_t sequence) const {
  uint32_t first = 0;
  for (uint32_t g = 0; g < n_groups_; ++g) {
    const bool has_snapshots = groups_[g].is_state && snapshots_.is_on();
    if (groups_[g].is_encoder || has_snapshots) continue;
    const uint32_t held = tables(sequence)[g].first_page * groups_[g].page_tokens;
    first = Max(first, FirstPositionToGoOnFrom(groups_[g], held, lengths_[sequence]));
  }
  first = Min(first, lengths_[sequence]);
  if (!snapshots_.is_on() || first == 0) return first;
  // States are restored first, at a position that the pages allow too.
  for (const SnapshotPlace& place : snapshots_.places(sequence)) {
    if (place.position >= first) return place.position;
  }
  return lengths_[sequence];
}

bool KvCache::CanRewindFrom(uint32_t length) const {
  for (uint32_t g = 0; g < n_groups_; ++g) {
    const CacheGroup& group = groups_[g];
    if (group.is_encoder || (group.is_state && snapshots_.is_on())) continue;
    const uint32_t seen = FirstVisible(length, group.window, group.chunk);
    const uint32_t held = seen - seen % group.page_tokens;
    const uint32_t first = FirstPositionToGoOnFrom(group, held, length);
    // With snapshots, only the start of the sequence is a position that is always kept.
    if (snapshots_.is_on() ? first != 0 : first >= length) return false;
  }
  return true;
}

bool KvCache::CanRepeatLast(uint32_t sequence) const {
  const uint32_t last = lengths_[sequence] - 1;
  for (uint32_t g = 0; g < n_groups_; ++g) {
    if (groups_[g].is_state || groups_[g].is_encoder) continue;
    const PageTable& table = tables(sequence)[g];
    const uint32_t page = table.pages[last / groups_[g].page_tokens - table.first_page];
    const bool is_own = (page & kQuantisedPage) == 0 && References(g, page) == 1;
    if (!is_own && pools_[g].n_free() == 0) return false;
  }
  return true;
}

Status KvCache::Rewind(uint32_t sequence, uint32_t position) {
  if (position > lengths_[sequence] || position < FirstRewindPosition(sequence)) {
    return Status::kBadState;
  }
  Cut(sequence, ResumePosition(sequence, position));
  return Status::kOk;
}

void KvCache::Cut(uint32_t sequence, uint32_t position) {
  DropSnapshotsBehind(sequence, position);
  ReleaseAfter(sequence, position);
  if (position != lengths_[sequence]) ReturnToSnapshot(sequence, position);
  lengths_[sequence] = position;
}

Status KvCache::Shift(uint32_t sequence, uint32_t pinned, uint32_t dropped, uint32_t unrotated_by) {
  const uint64_t unit = ShiftTokens({groups_, n_groups_});
  if (dropped == 0 || pinned % unit != 0 || dropped % unit != 0 ||
      uint64_t{pinned} + dropped > lengths_[sequence]) {
    return Status::kBadArgument;
  }
  if (n_edits_ != 0) return Status::kInternal;
  ReleaseAfter(sequence, lengths_[sequence]);
  const uint32_t length = lengths_[sequence] - dropped;
  // A shared page that moves gets a copy.
  for (uint32_t g = 0; g < n_groups_; ++g) {
    if (groups_[g].is_encoder) continue;
    const PageTable& table = Table(sequence, g);
    const uint64_t moved = (uint64_t{pinned} + dropped) / groups_[g].page_tokens;
    uint32_t copies = 0, quantised_copies = 0;
    for (uint32_t i = 0; i < table.n_pages; ++i) {
      const uint32_t page = table.pages[i];
      if (table.first_page + uint64_t{i} < moved || References(g, page) < 2) continue;
      ++((page & kQuantisedPage) != 0 ? quantised_copies : copies);
    }
    if (copies > pools_[g].n_free() || quantised_copies > quantised_pools_[g].n_free()) {
      return Status::kContextFull;
    }
  }
  for (uint32_t g = 0; g < n_groups_; ++g) {
    if (groups_[g].is_encoder) continue;
    PageTable& table = Table(sequence, g);
    const uint32_t keep = pinned / groups_[g].page_tokens;
    const uint32_t moved = keep + dropped / groups_[g].page_tokens;
    // Table indices of the first dropped page and the first moved one.
    const uint32_t first = Min(keep - Min(keep, table.first_page), table.n_pages);
    const uint32_t last = Min(moved - Min(moved, table.first_page), table.n_pages);
    DropPages(sequence, g, first, last);
    if (table.first_page >= moved) {
      table.first_page -= moved - keep;
    } else {
      table.first_page = Min(table.first_page, keep);
    }
    uint32_t* pages = Pages(sequence, g);
    for (uint32_t i = first; i < table.n_pages; ++i) {
      const uint32_t from = pages[i];
      if (References(g, from) > 1) {
        Release(g, from);
        pages[i] = TakeLike(g, from);
      }
      KvEdit* edit = AddEdit(g, from, pages[i]);
      edit->unrotated_by = unrotated_by;
      const uint32_t first_token = (table.first_page + i) * groups_[g].page_tokens;
      edit->n_tokens = Min(groups_[g].page_tokens, length - first_token);
    }
  }
  lengths_[sequence] = length;
  return Status::kOk;
}

}  // namespace arn
