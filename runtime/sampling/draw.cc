#include "runtime/sampling/draw.h"

#include "platform/base/arith.h"

namespace arn {
namespace {

constexpr uint32_t kMinBlock = 512;
// Error bound per weight: each rounding in a sum of n doubles, in any order, or in the subtraction
// is at most 2^-53 of the sum. DrawInOrder rounds 2 n + 1 times, DrawByBlocks less often.
constexpr double kErrorPerWeight = 0x1p-50;

}  // namespace

uint32_t DrawInOrder(const float* weights, uint32_t n, double unit) {
  double total = 0.0;
  for (uint32_t i = 0; i < n; ++i) total += static_cast<double>(weights[i]);
  double left = unit * total;
  uint32_t chosen = 0;
  for (uint32_t i = 0; i < n; ++i) {
    if (weights[i] == 0.0f) continue;
    chosen = i;
    left -= static_cast<double>(weights[i]);
    if (left < 0.0) break;
  }
  return chosen;
}

uint32_t BlockSums::BlockOf(uint32_t n) {
  return Max(kMinBlock, static_cast<uint32_t>(CeilDiv(n, kMaxBlocks)));
}

bool DrawByBlocks(const float* weights, uint32_t n, const BlockSums& blocks, double unit,
                  uint32_t* index) {
  const auto n_blocks = static_cast<uint32_t>(CeilDiv(n, blocks.block));
  double total = 0.0;
  for (uint32_t b = 0; b < n_blocks; ++b) total += blocks.sums[b];
  const double margin = total * n * kErrorPerWeight;
  double left = unit * total;
  uint32_t b = 0;
  while (b < n_blocks && left - blocks.sums[b] > margin) left -= blocks.sums[b++];
  for (uint32_t i = b * blocks.block; i < n; ++i) {
    const double before = left;
    left -= static_cast<double>(weights[i]);
    if (left > margin) continue;
    if (left >= -margin || before <= margin) return false;
    *index = i;
    return true;
  }
  return false;
}

}  // namespace arn
