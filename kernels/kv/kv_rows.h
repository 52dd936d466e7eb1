// Writes keys and values to pages and reads them back. Scalar: the reference definition of the
// element formats of kernels/contract/kv_view.h.
#pragma once

#include <cstdint>

#include "kernels/contract/kv_page.h"

namespace arn {

// Writes x [head_dim] to slot `slot` of an active page's block.
void StoreKvRow(const float* x, const KvGroup& group, uint32_t slot, const KvHeadBlock& block);

// Reads slot `slot` of a block of any page into x [head_dim]. `keys`: the block is K.
void LoadKvRow(const KvGroup& group, bool keys, const KvHeadBlock& block, uint32_t slot, float* x);

// The quantisation range of n values. Steps of `scale` starting at `least` cover all of them in
// 2^bits - 1 steps, after both are rounded to f16.
struct KvRange {
  uint16_t scale = 0, least = 0;
};
KvRange RangeOf(float low, float high, uint32_t bits);

// Writes the values of slot `slot` of a quantised block. REQUIRES: its ranges are already written.
void StoreQuantisedRow(const float* x, const KvGroup& group, bool keys, uint32_t slot,
                       const KvHeadBlock& block);

}  // namespace arn
