#include "kernels/contract/adapter.h"

#include "kernels/contract/ops.h"
#include "platform/base/arith.h"

namespace arn {

uint32_t RankStride(uint32_t rank) { return static_cast<uint32_t>(AlignUp(rank, kLowRankColumns)); }

LowRankArgs LowRankA(const LowRank& change, float scale, const float* x, uint32_t n_rows,
                     float* y) {
  const uint32_t stride = RankStride(change.rank);
  return {change.dtype, change.a, change.cols, stride, n_rows, x,
          change.cols,  y,        stride,      false,  scale};
}

LowRankArgs LowRankB(const LowRank& change, const LowRankBlock& block, const float* y,
                     uint32_t n_rows, float* out, uint32_t width) {
  return {change.dtype,
          block.b,
          block.rank,
          block.n_rows,
          n_rows,
          y + block.first_rank,
          RankStride(change.rank),
          out + block.first_row,
          width,
          true,
          1.0f};
}

}  // namespace arn
