// Top-k expert routing, shared by the backends that run on the host.
#pragma once

#include <cstdint>

#include "kernels/contract/program.h"

namespace arn {

struct RouteArgs {
  uint32_t n_experts = 0;
  uint32_t n_chosen = 0;        // <= n_experts
  bool norm_topk_prob = false;  // divides the chosen scores by their sum (norm_topk_prob)
  RouteScore score = RouteScore::kSoftmax;
};
RouteArgs RouteOf(const Step& step);  // REQUIRES: a kRoute step

// Selects the n_chosen experts with the largest logits, the lower id first on ties, and computes
// their scores (Shazeer et al., "Outrageously Large Neural Networks", 2017; Jiang et al., 2024,
// arXiv:2401.04088). logits: [n_experts], overwritten. topk: [2 * n_chosen], the ids in
// descending order of logit, then their scores. The ids are in range for any logits, NaN included.
void Route(const RouteArgs& args, float* logits, float* topk);

}  // namespace arn
