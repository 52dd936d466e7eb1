#include "kernels/contract/route.h"

#include <cmath>

namespace arn {

void Route(const RouteParams& params, float* logits, float* topk) {
  const uint32_t n_experts = params.n_experts, n_chosen = params.n_chosen;
  float largest = logits[0];
  for (uint32_t e = 1; e < n_experts; ++e) largest = logits[e] > largest ? logits[e] : largest;
  double total = 0.0;
  for (uint32_t e = 0; e < n_experts; ++e) {
    logits[e] = params.route_score == RouteScore::kSigmoid ? 1.0f / (1.0f + std::exp(-logits[e]))
                                                           : std::exp(logits[e] - largest);
    total += static_cast<double>(logits[e]);
  }
  constexpr float kTaken = -1.0f;
  double chosen_total = 0.0;
  for (uint32_t i = 0; i < n_chosen; ++i) {
    uint32_t best = n_experts;
    for (uint32_t e = 0; e < n_experts; ++e) {
      if (logits[e] == kTaken) continue;
      if (best == n_experts || logits[e] > logits[best]) best = e;
    }
    topk[i] = static_cast<float>(best);
    topk[n_chosen + i] = logits[best];
    chosen_total += static_cast<double>(logits[best]);
    logits[best] = kTaken;
  }
  if (params.route_score == RouteScore::kSigmoid && !params.norm_topk_prob) return;
  const double divisor = params.norm_topk_prob ? chosen_total : total;
  for (uint32_t i = 0; i < n_chosen; ++i) {
    topk[n_chosen + i] = static_cast<float>(static_cast<double>(topk[n_chosen + i]) / divisor);
  }
}

}  // namespace arn
