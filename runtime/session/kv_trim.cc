#include "runtime/session/kv_trim.h"

#include "platform/os/pages.h"
#include "runtime/session/kv_pager.h"

namespace arn {
namespace {

// Trims whole ranges of unused pages at once.
Status TrimPool(const SessionCore& core, const PagePool& pool, const KvPages& pages,
                bool is_in_file, uint64_t* bytes) {
  for (uint32_t first = 0; first < pool.n_pages();) {
    uint32_t last = first;
    while (last < pool.n_pages() && pool.References(last) == 0) ++last;
    for (uint32_t i = 0; i < pages.n_pieces() && last > first; ++i) {
      const Slice piece = pages.Piece(first, i);
      const uint64_t n = (last - first) * piece.bytes;
      const Span<std::byte> unused(core.memory.At(piece), static_cast<size_t>(n));
      ARN_TRY(is_in_file ? KvPager::Discard(unused) : TrimPages(unused));
      *bytes += n;
    }
    first = last + 1;
  }
  return Status::kOk;
}

}  // namespace

Status TrimUnusedPages(const SessionCore& core, const KvCache& cache, uint64_t* out_bytes) {
  *out_bytes = 0;
  for (uint32_t g = 0; g < cache.n_groups(); ++g) {
    const KvGroup& group = core.plan.program.kv_groups[g];
    const bool is_in_file = core.plan.IsInFile(g);
    ARN_TRY(TrimPool(core, cache.pool(g), group.active, is_in_file, out_bytes));
    ARN_TRY(TrimPool(core, cache.quantised_pool(g), group.quantised, is_in_file, out_bytes));
  }
  return Status::kOk;
}

}  // namespace arn
