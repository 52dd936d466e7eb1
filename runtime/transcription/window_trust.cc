#include "runtime/transcription/window_trust.h"

#include <cmath>

#include "platform/base/arith.h"

namespace arn {
namespace {

constexpr size_t kTailTokens = 32;

}  // namespace

double TailEntropy(Span<const int32_t> ids) {
  const size_t n = Min(ids.size(), kTailTokens);
  const Span<const int32_t> tail = ids.subspan(ids.size() - n, n);
  double entropy = 0.0;
  for (const int32_t id : tail) {
    size_t count = 0;
    for (const int32_t other : tail) count += id == other ? 1 : 0;
    // Each of an id's `count` places adds its part.
    entropy -= std::log(static_cast<double>(count) / static_cast<double>(n));
  }
  return entropy / static_cast<double>(n);
}

Trust JudgeWindow(const TrustRules& rules, Span<const int32_t> ids, double logprob,
                  double no_speech) {
  const bool is_unlikely = rules.need_logprob() && logprob < static_cast<double>(rules.logprob);
  if (is_unlikely && rules.no_speech > 0.0f && no_speech > static_cast<double>(rules.no_speech)) {
    return Trust::kSilent;
  }
  // Fewer tokens say too little.
  const bool repeats = rules.entropy > 0.0f && ids.size() > kTailTokens &&
                       TailEntropy(ids) < static_cast<double>(rules.entropy);
  return is_unlikely || repeats ? Trust::kRetried : Trust::kKept;
}

}  // namespace arn
