#include "kernels/contract/adapter.h"

#include "kernels/contract/ops.h"
#include "platform/base/arith.h"

namespace arn {

uint32_t RankStride(uint32_t rank) { return static_cast<uint32_t>(AlignUp(rank, kLowRankColumns)); }

LowRankArgs LowRankA(const LowRank& change, float scale, const float* x, uint32_t n_rows,
                     float* y) {
  LowRankArgs args = {};
  args.dtype = change.dtype;
  args.panels = change.a + LowRankAHeadBytes(change.dtype, change.rank);
  args.inputs = change.cols;
  args.n = RankStride(change.rank);
  args.scales = reinterpret_cast<const float*>(change.a);
  args.sums = reinterpret_cast<const int32_t*>(args.scales + args.n);
  args.n_rows = n_rows;
  args.x = x;
  args.x_stride = change.cols;
  args.out = y;
  args.out_stride = args.n;
  args.factor = scale;
  return args;
}

LowRankArgs LowRankB(const LowRank& change, const LowRankBlock& block, const float* y,
                     uint32_t n_rows, float* out, uint32_t width) {
  LowRankArgs args = {};
  args.dtype = change.dtype;
  args.scales = reinterpret_cast<const float*>(block.b);
  args.panels = block.b + LowRankBHeadBytes(change.dtype, block.n_rows);
  args.inputs = block.rank;
  args.n = block.n_rows;
  args.n_rows = n_rows;
  args.x = y + block.first_rank;
  args.x_stride = RankStride(change.rank);
  args.out = out + block.first_row;
  args.out_stride = width;
  args.accumulates = true;
  args.factor = 1.0f;
  return args;
}

}  // namespace arn
