#include "runtime/cache/sequence_cache.h"

#include "platform/base/arith.h"

namespace arn {

Status PlanSequenceCache(Span<const KvGroup> groups, Layout* layout, SequenceCachePlan* out) {
  *out = SequenceCachePlan();
  for (size_t g = 0; g < groups.size(); ++g) {
    ARN_ASSIGN(out->tables[g],
               layout->AddArray(Region::kConstants, groups[g].n_pages, sizeof(uint32_t)));
    ARN_ASSIGN(out->free_pages[g],
               layout->AddArray(Region::kConstants, groups[g].n_pages, sizeof(uint32_t)));
  }
  return Status::kOk;
}

void SequenceCache::Init(Span<const KvGroup> groups, const SequenceCachePlan& plan,
                         const Memory& memory, uint32_t context_tokens) {
  groups_ = groups;
  context_tokens_ = context_tokens;
  for (size_t g = 0; g < groups.size(); ++g) {
    pools_[g].pages = memory.As<uint32_t>(plan.tables[g]);
    pools_[g].free_pages = memory.As<uint32_t>(plan.free_pages[g]);
  }
  Reset();
}

Status SequenceCache::Reserve(uint32_t n_tokens) {
  if (n_tokens > context_tokens_ - length_) return Status::kContextFull;
  const uint64_t end = uint64_t{length_} + n_tokens;
  for (size_t g = 0; g < groups_.size(); ++g) {
    const uint64_t needed = CeilDiv(end, groups_[g].page_tokens);
    if (needed > tables_[g].n_pages + uint64_t{pools_[g].n_free}) return Status::kContextFull;
  }
  for (size_t g = 0; g < groups_.size(); ++g) {
    Pool& pool = pools_[g];
    const uint64_t needed = CeilDiv(end, groups_[g].page_tokens);
    while (tables_[g].n_pages < needed) {
      pool.pages[tables_[g].n_pages++] = pool.free_pages[--pool.n_free];
    }
  }
  return Status::kOk;
}

void SequenceCache::Reset() {
  length_ = 0;
  for (size_t g = 0; g < groups_.size(); ++g) {
    const uint32_t n_pages = groups_[g].n_pages;
    // Low pages first, so that a short sequence touches one run of memory.
    for (uint32_t i = 0; i < n_pages; ++i) pools_[g].free_pages[i] = n_pages - 1 - i;
    pools_[g].n_free = n_pages;
    tables_[g].pages = pools_[g].pages;
    tables_[g].n_pages = 0;
    tables_[g].first_page = 0;
  }
}

uint64_t SequenceCache::UsedBytes() const {
  uint64_t bytes = 0;
  for (size_t g = 0; g < groups_.size(); ++g) {
    bytes += uint64_t{tables_[g].n_pages} * groups_[g].page_bytes;
  }
  return bytes;
}

}  // namespace arn
