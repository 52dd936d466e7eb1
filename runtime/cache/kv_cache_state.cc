// KvCache methods for saving and restoring.
#include <cstring>

#include "kernels/contract/kv_page.h"
#include "platform/base/arith.h"
#include "runtime/cache/kv_cache.h"

namespace arn {
namespace {

constexpr uint32_t kNoNumber = UINT32_MAX;

}  // namespace

PageTable KvCache::SeenTable(uint32_t sequence, uint32_t g) const {
  const CacheGroup& group = groups_[g];
  PageTable table = tables(sequence)[g];
  if (group.is_encoder) return table;
  const uint32_t length = lengths_[sequence];
  // Excludes pages reserved by a failed run.
  const uint64_t end = CeilDiv(length, group.page_tokens);
  table.n_pages = end <= table.first_page
                      ? 0
                      : Min(table.n_pages, static_cast<uint32_t>(end) - table.first_page);
  const uint32_t last = length - Min(length, 1u);
  const uint32_t first = FirstVisible(last, group.window, group.chunk) / group.page_tokens;
  if (first > table.first_page) {
    const uint32_t unseen = Min(first - table.first_page, table.n_pages);
    table.pages += unseen;
    table.n_pages -= unseen;
    table.first_page = first;
  }
  return table;
}

void KvCache::NumberPages(uint32_t g, uint32_t first, uint32_t end,
                          uint32_t out[kPageKinds]) const {
  const CacheGroup& group = groups_[g];
  uint32_t* numbers = numbers_[g];
  for (uint32_t i = 0; i < group.n_pages + group.n_quantised_pages; ++i) numbers[i] = kNoNumber;
  for (uint32_t kind = 0; kind < kPageKinds; ++kind) out[kind] = 0;
  for (uint32_t s = first; s < end; ++s) {
    const PageTable table = SeenTable(s, g);
    for (uint32_t i = 0; i < table.n_pages; ++i) {
      uint32_t& number = numbers[PageIndex(group, table.pages[i])];
      if (number == kNoNumber) number = out[KindOfPage(table.pages[i])]++;
    }
  }
}

void KvCache::BeginRestore(const uint32_t n_pages[][kPageKinds]) {
  for (uint32_t g = 0; g < n_groups_; ++g) {
    for (uint32_t s = 0; s < n_sequences_; ++s) {
      Table(s, g).n_pages = 0;
      Table(s, g).first_page = 0;
    }
    pools_[g].Restart(n_pages[g][0]);
    quantised_pools_[g].Restart(n_pages[g][1]);
  }
  for (uint32_t s = 0; s < n_sequences_; ++s) {
    lengths_[s] = encoder_rows_[s] = 0;
    snapshots_.Clear(s);  // the pools have no references any more
  }
  n_edits_ = 0;
}

bool KvCache::HasFree(const uint32_t n_pages[][kPageKinds]) const {
  for (uint32_t g = 0; g < n_groups_; ++g) {
    if (n_pages[g][0] > pools_[g].n_free() || n_pages[g][1] > quantised_pools_[g].n_free()) {
      return false;
    }
  }
  return true;
}

void KvCache::AdoptTable(uint32_t sequence, uint32_t g, uint32_t first_page, uint32_t n_pages,
                         const void* entries) {
  PageTable& table = Table(sequence, g);
  uint32_t* pages = Pages(sequence, g);
  if (n_pages > 0) std::memcpy(pages, entries, uint64_t{n_pages} * sizeof(uint32_t));
  table.first_page = first_page;
  table.n_pages = n_pages;
  for (uint32_t i = 0; i < n_pages; ++i) pages[i] = TakeLike(g, pages[i]);
}

void KvCache::RestoreTable(uint32_t sequence, uint32_t g, uint32_t first_page, uint32_t n_pages,
                           const void* entries) {
  PageTable& table = Table(sequence, g);
  uint32_t* pages = Pages(sequence, g);
  if (n_pages > 0) std::memcpy(pages, entries, uint64_t{n_pages} * sizeof(uint32_t));
  table.first_page = first_page;
  table.n_pages = n_pages;
  for (uint32_t i = 0; i < n_pages; ++i) Retain(g, pages[i]);
}

}  // namespace arn
