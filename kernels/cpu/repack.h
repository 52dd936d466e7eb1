// From the layout in the bundle to the one that this CPU's kernel reads, slab by slab.
#pragma once

#include "kernels/weight.h"

namespace arn::cpu {

// Scratch for one slab of layout.nr rows.
uint64_t RepackScratchBytes(const Weight& weight, const WeightLayout& layout);

// Writes all of `weight` in `layout` to `out` (PackedBytes).
void Repack(const Weight& weight, const WeightLayout& layout, std::byte* scratch, std::byte* out);

}  // namespace arn::cpu
