#include "kernels/route.h"

#include <cmath>

namespace arn {

void Route(float* logits, uint32_t n_experts, uint32_t n_chosen, bool renormalise, float* routes) {
  float largest = logits[0];
  for (uint32_t e = 1; e < n_experts; ++e) largest = logits[e] > largest ? logits[e] : largest;
  double total = 0.0;
  for (uint32_t e = 0; e < n_experts; ++e) {
    logits[e] = std::exp(logits[e] - largest);
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
    routes[i] = static_cast<float>(best);
    routes[n_chosen + i] = logits[best];
    chosen_total += static_cast<double>(logits[best]);
    logits[best] = kTaken;
  }
  const double divisor = renormalise ? chosen_total : total;
  for (uint32_t i = 0; i < n_chosen; ++i) {
    routes[n_chosen + i] = static_cast<float>(static_cast<double>(routes[n_chosen + i]) / divisor);
  }
}

}  // namespace arn
