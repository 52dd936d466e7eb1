#include "runtime/cache/cache_group.h"

#include "platform/base/arith.h"

namespace arn {

uint32_t TablePages(const CacheGroup& group, uint32_t context_tokens, uint32_t max_rows) {
  const uint64_t all = CeilDiv(context_tokens, group.page_tokens);
  uint64_t behind = UINT64_MAX;  // earlier tokens that a run's first row attends to
  if (group.window != 0) behind = group.window - 1;
  if (group.chunk != 0) behind = Min<uint64_t>(behind, group.chunk - 1);
  if (behind == UINT64_MAX) return static_cast<uint32_t>(all);
  // An interval of n tokens intersects at most ceil((n - 1) / page) + 1 pages.
  const uint64_t n = behind + max_rows;
  return static_cast<uint32_t>(Min(all, CeilDiv(n - 1, group.page_tokens) + 1));
}

uint32_t ActivePages(const CacheGroup& group, uint32_t context_tokens, uint32_t max_rows) {
  const uint32_t all = TablePages(group, context_tokens, max_rows);
  if (QuantisedPages(group, context_tokens, max_rows) == 0) return all;
  const uint64_t n = uint64_t{group.residual} + max_rows;
  return static_cast<uint32_t>(Min<uint64_t>(all, CeilDiv(n - 1, group.page_tokens) + 1));
}

uint32_t QuantisedPages(const CacheGroup& group, uint32_t context_tokens, uint32_t max_rows) {
  if (group.residual >= context_tokens) return 0;
  // The residual covers the whole window, so nothing is quantised.
  if (group.window != 0 && group.window - 1 <= group.residual) return 0;
  return Min(TablePages(group, context_tokens, max_rows),
             (context_tokens - group.residual) / group.page_tokens);
}

void PlanPools(CacheGroup* group, uint32_t context_tokens, uint32_t max_rows,
               uint32_t n_sequences) {
  group->n_quantised_pages = QuantisedPages(*group, context_tokens, max_rows) * n_sequences;
  group->n_pages = ActivePages(*group, context_tokens, max_rows) * n_sequences;
  // An old page stays active while it is recent in another sequence. If that one gets a copy to
  // write to, both are active until the next reservation quantises.
  if (group->n_quantised_pages != 0) group->n_pages += n_sequences - 1;
}

CacheGroup StateGroupOf(uint32_t n_sequences, uint32_t n_snapshots) {
  CacheGroup group;
  group.is_state = true;
  group.page_tokens = kStatePageTokens;
  group.table_pages = 2;
  group.n_pages = (group.table_pages + n_snapshots) * n_sequences;
  return group;
}

CacheGroup EncoderGroupOf(uint32_t n_sequences, uint32_t encoder_rows) {
  CacheGroup group;
  group.is_encoder = true;
  group.page_tokens = static_cast<uint32_t>(AlignUp(encoder_rows, kKvStrip));
  group.table_pages = 1;
  group.n_pages = n_sequences;
  return group;
}

uint64_t PagesWith(const CacheGroup& group, uint32_t length, uint32_t n_tokens) {
  if (group.is_encoder) return 0;
  if (group.is_state) return (length != 0 ? 1u : 0u) + (n_tokens != 0 ? 1u : 0u);
  return CeilDiv(uint64_t{length} + n_tokens, group.page_tokens);
}

uint32_t FirstPositionToGoOnFrom(const CacheGroup& group, uint32_t first_held, uint32_t length) {
  if (group.is_state) return length;
  if (first_held == 0) return 0;
  uint64_t position = UINT32_MAX;
  if (group.window != 0) position = uint64_t{first_held} + group.window - 1;
  if (group.chunk != 0) {
    position = Min(position, CeilDiv(first_held, group.chunk) * group.chunk);
  }
  return static_cast<uint32_t>(Min<uint64_t>(position, UINT32_MAX));
}

uint64_t ShiftTokens(Span<const CacheGroup> groups) {
  uint64_t tokens = 1;
  for (const CacheGroup& group : groups) {
    if (group.is_encoder) continue;
    tokens = CommonMultiple(tokens, group.page_tokens);
    if (group.chunk != 0) tokens = CommonMultiple(tokens, group.chunk);
    if (tokens > UINT32_MAX) return UINT32_MAX;
  }
  return tokens;
}

}  // namespace arn
