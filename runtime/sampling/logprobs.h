// Log-probabilities of tokens: log-softmax of the logits.
#pragma once

#include <cstdint>

#include "platform/base/span.h"

namespace arn {

struct TokenLogprob {
  int32_t id;
  float logprob;  // natural logarithm
};

// Returns log of the sum of exp(logits), f32 [n].
double LogSumExp(const float* logits, uint32_t n);
// Fills `out` with the most likely tokens, best first, ties by lower id. logits: f32 [n].
// REQUIRES: out.size() <= n. Takes n * out.size() comparisons at most, for short lists.
void MostLikely(const float* logits, uint32_t n, Span<TokenLogprob> out);

}  // namespace arn
