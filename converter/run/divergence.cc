#include "converter/run/divergence.h"

#include <algorithm>
#include <cmath>

namespace arn::convert {

double LogSumExp(const float* logits, uint32_t vocab) {
  const double largest = static_cast<double>(*std::max_element(logits, logits + vocab));
  double sum = 0;
  for (uint32_t i = 0; i < vocab; ++i) sum += std::exp(static_cast<double>(logits[i]) - largest);
  return largest + std::log(sum);
}

double Divergence(const float* reference, const float* logits, uint32_t vocab) {
  return Divergence(reference, LogSumExp(reference, vocab), logits, vocab);
}

double Divergence(const float* reference, double reference_z, const float* logits, uint32_t vocab) {
  const double z = LogSumExp(logits, vocab);
  double kl = 0;
  for (uint32_t i = 0; i < vocab; ++i) {
    const double p = static_cast<double>(reference[i]) - reference_z;
    kl += std::exp(p) * (p - (static_cast<double>(logits[i]) - z));
  }
  return kl;
}

}  // namespace arn::convert
