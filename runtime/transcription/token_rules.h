// TokenRules: which token of a window comes next, with transformers' rules for times:
// SuppressTokensAtBeginLogitsProcessor, SuppressTokensLogitsProcessor and
// WhisperTimeStampLogitsProcessor (generation/logits_process.py), in this order.
#pragma once

#include <cstdint>

#include "platform/base/span.h"
#include "runtime/sampling/random.h"

namespace arn {

struct TokenRules {
  uint32_t vocab = 0;
  int32_t end_id = 0;
  int32_t no_timestamps_id = 0;             // ids above it are times
  uint32_t latest_first_id = UINT32_MAX;    // latest time that may come first
  Span<const uint32_t> suppressed;          // a bit per id of the vocabulary
  Span<const int32_t> suppressed_at_begin;  // not first
  bool has_timestamps = true;               // false: times have no rules

  bool IsTime(int32_t id) const { return id > no_timestamps_id; }
  bool IsSuppressed(uint32_t id) const { return (suppressed[id / 32] >> (id % 32) & 1) != 0; }
};

// Chooses the likeliest token after `chosen`, those of the window so far. logits: f32 [vocab], not
// modified.
// With times:
//   - the first token is a time, at most latest_first_id;
//   - after a time that follows a time, or that is the first token, no time;
//   - after a time that follows text, a time or the end;
//   - times never decrease, and one that ends a segment is later than the one that began it;
//   - a time if all times together are more likely than the likeliest other token.
// Returns end_id if the rules leave none.
int32_t ChooseToken(const TokenRules& rules, Span<const int32_t> chosen, const float* logits);

struct RatedToken {
  int32_t id = 0;
  double logprob = 0.0;  // natural logarithm; among the tokens that the rules leave
};
// As ChooseToken, with the token's log-probability at temperature 1. temperature > 0: draws the
// token from the distribution of the logits divided by it.
RatedToken RateToken(const TokenRules& rules, Span<const int32_t> chosen, const float* logits,
                     float temperature, Random* random);

}  // namespace arn
