// Converts a matrix from its bundle layout to the layout this CPU's kernel reads, slab by slab.
#pragma once

#include "kernels/contract/weight.h"

namespace arn::cpu {

// Scratch bytes for one slab of layout.nr rows.
uint64_t RepackScratchBytes(const Weight& weight, const WeightLayout& layout);

// Writes slabs [begin, end) of `weight` in `layout` to `out`, where the first slab of the matrix
// begins (PackedBytes bytes in all).
void RepackSlabs(const Weight& weight, const WeightLayout& layout, uint32_t begin, uint32_t end,
                 std::byte* scratch, std::byte* out);

}  // namespace arn::cpu
