#include "converter/family/alibi.h"

#include <cmath>

namespace arn::convert {

std::vector<float> AlibiSlopes(Alibi rule, uint32_t n_heads) {
  std::vector<float> slopes;
  if (rule == Alibi::kNone) return slopes;
  // Rounds the base to float32, as transformers does.
  const auto slope = [](uint32_t number, uint32_t power) {
    const auto base = static_cast<float>(std::exp2(-8.0 / power));
    return static_cast<float>(std::pow(static_cast<double>(base), number));
  };
  uint32_t power = 1;
  while (2 * power <= n_heads) power *= 2;
  if (rule == Alibi::kLargestPower || power == n_heads) {
    for (uint32_t i = 1; i <= power; ++i) slopes.push_back(slope(i, power));
    for (uint32_t i = 1; slopes.size() < n_heads; i += 2) slopes.push_back(slope(i, 2 * power));
    return slopes;
  }
  for (uint32_t i = 2; i <= 2 * power; i += 2) slopes.push_back(slope(i, 2 * power));
  for (uint32_t i = 1; slopes.size() < n_heads; i += 2) slopes.push_back(slope(i, 2 * power));
  slopes.resize(n_heads);
  return slopes;
}

}  // namespace arn::convert
