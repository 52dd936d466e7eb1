// How a token's key or value of one kv head is written into a page and read back: the definition of
// the element formats of kernels/kv_view.h, scalar.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/base/dtype.h"

namespace arn {

// x [head_dim] into slot `slot` of values [page_tokens, head_dim]; scales [page_tokens] gets the
// token's scale (untouched, and may be null, unless the type is kInt8).
void StoreKvRow(const float* x, DType dtype, uint32_t slot, uint32_t head_dim, std::byte* values,
                float* scales);
// The other way round. x [head_dim].
void LoadKvRow(const std::byte* values, const float* scales, DType dtype, uint32_t slot,
               uint32_t head_dim, float* x);

}  // namespace arn
