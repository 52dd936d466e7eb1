#include "kernels/vulkan/lower/grid.h"

#include "platform/base/arith.h"

namespace arn::vulkan {

uint32_t RowsOf(const GridOf& grid, const RowCounts& rows) {
  const bool is_few = rows.logits <= kFewRows;
  switch (grid.rows) {
    case GridRows::kRun:
    case GridRows::kShared: return rows.run * grid.row_factor;
    case GridRows::kPooled: return rows.pooled;
    case GridRows::kSequences: return rows.sequences;
    case GridRows::kFewLogits:
      if (!is_few) return 0;
      break;
    case GridRows::kManyLogits:
      if (is_few) return 0;
      break;
    case GridRows::kLogits:
    case GridRows::kEdits: break;
  }
  return rows.logits > grid.first_row ? Min(rows.logits - grid.first_row, grid.most_rows) : 0;
}

}  // namespace arn::vulkan
