// Which experts a token goes to: the same code for every backend in host memory.
#pragma once

#include <cstdint>

#include "kernels/program.h"

namespace arn {

struct RouteArgs {
  uint32_t n_experts = 0;
  uint32_t n_chosen = 0;     // <= n_experts
  bool renormalise = false;  // the chosen scores are divided by their sum
  RouteScore score = RouteScore::kSoftmax;
};
RouteArgs RouteOf(const Step& step);  // of a kRoute step

// The n_chosen experts with the largest of logits [n_experts], the lower id first among equals, and
// their scores (Shazeer et al., "Outrageously Large Neural Networks", 2017; Jiang et al., 2024,
// arXiv:2401.04088). routes [2 * n_chosen]: ids, the largest first, then the scores. logits is
// overwritten. Ids are valid whatever the logits are.
void Route(const RouteArgs& args, float* logits, float* routes);

}  // namespace arn
