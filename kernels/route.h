// Which experts a token goes to: the same code for every backend in host memory.
#pragma once

#include <cstdint>

namespace arn {

// The n_chosen largest of softmax(logits [n_experts]), the lower id first among equals (Shazeer et
// al., "Outrageously Large Neural Networks", 2017; Jiang et al., 2024, arXiv:2401.04088).
// routes [2 * n_chosen]: ids, the largest first, then their probabilities, divided by their sum
// when `renormalise`. logits is overwritten. n_chosen <= n_experts. Ids are valid whatever the
// logits are.
void Route(float* logits, uint32_t n_experts, uint32_t n_chosen, bool renormalise, float* routes);

}  // namespace arn
