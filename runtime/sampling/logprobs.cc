#include "runtime/sampling/logprobs.h"

#include <cmath>

#include "platform/base/arith.h"

namespace arn {

double LogSumExp(const float* logits, uint32_t n) {
  float max = logits[0];
  for (uint32_t i = 1; i < n; ++i) max = Max(max, logits[i]);
  double sum = 0.0;
  for (uint32_t i = 0; i < n; ++i) sum += std::exp(static_cast<double>(logits[i] - max));
  return static_cast<double>(max) + std::log(sum);
}

void MostLikely(const float* logits, uint32_t n, Span<TokenLogprob> out) {
  size_t found = 0;
  for (uint32_t i = 0; i < n && !out.empty(); ++i) {
    const float logit = logits[i];
    if (found == out.size() && !(logit > out[found - 1].logprob)) continue;
    size_t place = found == out.size() ? found - 1 : found++;
    for (; place > 0 && logit > out[place - 1].logprob; --place) out[place] = out[place - 1];
    out[place] = {static_cast<int32_t>(i), logit};
  }
  const double log_sum = LogSumExp(logits, n);
  for (TokenLogprob& token : out) {
    token.logprob = static_cast<float>(static_cast<double>(token.logprob) - log_sum);
  }
}

}  // namespace arn
