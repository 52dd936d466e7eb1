// Top-k expert routing, shared by the backends that run on the host.
#pragma once

#include <cstdint>

#include "kernels/contract/program.h"

namespace arn {

// Selects the n_chosen experts with the largest logits, the lower id first on ties, and computes
// their scores (Shazeer et al., "Outrageously Large Neural Networks", 2017; Jiang et al., 2024,
// arXiv:2401.04088). logits: [n_experts], overwritten. topk: [2 * n_chosen], the ids in
// descending order of logit, then their scores. The ids are in range for any logits, NaN included.
void Route(const RouteParams& params, float* logits, float* topk);

}  // namespace arn
