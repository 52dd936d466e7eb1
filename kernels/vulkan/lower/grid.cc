#include "kernels/vulkan/lower/grid.h"

#include "platform/base/arith.h"

namespace arn::vulkan {

uint32_t RowsOf(const GridOf& grid, const RowCounts& rows) {
  const bool is_few = rows.logits <= kFewRows;
  uint32_t n = rows.logits;
  switch (grid.rows) {
    case GridRows::kRun:
    case GridRows::kShared: n = rows.run * grid.row_factor; break;
    case GridRows::kPooled: n = rows.pooled; break;
    case GridRows::kSequences: n = rows.sequences; break;
    case GridRows::kFewLogits: n = is_few ? n : 0; break;
    case GridRows::kManyLogits: n = is_few ? 0 : n; break;
    case GridRows::kLogits:
    case GridRows::kEdits: break;
  }
  return n > grid.first_row ? Min(n - grid.first_row, grid.most_rows) : 0;
}

}  // namespace arn::vulkan
