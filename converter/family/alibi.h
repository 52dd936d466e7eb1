// ALiBi's slopes.
#pragma once

#include <cstdint>
#include <vector>

#include "converter/family/family.h"

namespace arn::convert {

// Returns the slope of each head, as build_alibi_tensor (modeling_bloom.py) and
// build_mpt_alibi_tensor (modeling_mpt.py) compute them; empty without ALiBi.
std::vector<float> AlibiSlopes(Alibi rule, uint32_t n_heads);

}  // namespace arn::convert
