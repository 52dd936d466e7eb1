// Converts a matrix from its bundle layout to the layout this CPU's kernel reads, slab by slab.
#pragma once

#include "kernels/contract/weight.h"

namespace arn::cpu {

// Scratch bytes for one slab of layout.nr rows.
uint64_t RepackScratchBytes(const Weight& weight, const WeightLayout& layout);

// Writes `weight` in `layout` to `out` (PackedBytes bytes).
void Repack(const Weight& weight, const WeightLayout& layout, std::byte* scratch, std::byte* out);

}  // namespace arn::cpu
