// How keys and values are written into pages and read back: the definition of the element formats
// of kernels/kv_view.h, scalar.
#pragma once

#include <cstdint>

#include "kernels/kv_page.h"

namespace arn {

// x [head_dim] into slot `slot` of a block of an open page.
void StoreKvRow(const float* x, const KvGroup& group, uint32_t slot, const KvHeadBlock& block);

// Slot `slot` of a block of any page. x [head_dim]. `keys`: the block is K.
void LoadKvRow(const KvGroup& group, bool keys, const KvHeadBlock& block, uint32_t slot, float* x);

// The range of n values as the two numbers of a pair: steps of `scale` from `least` on reach all of
// them with 2^bits - 1 steps, after both were rounded to f16.
struct KvRange {
  uint16_t scale = 0, least = 0;
};
KvRange RangeOf(float low, float high, uint32_t bits);

// The values of slot `slot` of a sealed block, whose ranges are written already.
void StoreSealedRow(const float* x, const KvGroup& group, bool keys, uint32_t slot,
                    const KvHeadBlock& block);

}  // namespace arn
