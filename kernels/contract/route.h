// Top-k expert routing, shared by the backends that run on the host.
#pragma once

#include <cstdint>

#include "kernels/contract/program.h"

namespace arn {

// Selects the n_chosen experts with the largest logits, or scores plus correction, the lower id
// first on ties, and computes their weights (Shazeer et al., "Outrageously Large Neural Networks",
// 2017; Jiang et al., 2024, arXiv:2401.04088; Liu et al., 2024, arXiv:2412.19437).
// correction: [n_experts], or null. logits: [n_experts], overwritten. topk: [2 * n_chosen], the ids
// in descending order, then their weights. The ids are in range and distinct for any logits, NaN
// included.
void Route(const RouteParams& params, const float* correction, float* logits, float* topk);

}  // namespace arn
