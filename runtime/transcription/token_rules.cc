#include "runtime/transcription/token_rules.h"

#include <cmath>

#include "platform/base/arith.h"

namespace arn {
namespace {

constexpr uint32_t kNone = UINT32_MAX;

// Ids [begin, end).
struct IdRange {
  uint32_t begin = 0;
  uint32_t end = 0;
};

struct Choice {
  const TokenRules& rules;
  const float* logits;
  bool is_first;

  bool Allows(uint32_t id) const {
    if (rules.IsSuppressed(id)) return false;
    if (!is_first) return true;
    for (const int32_t other : rules.suppressed_at_begin) {
      if (static_cast<uint32_t>(other) == id) return false;
    }
    return true;
  }
  // Returns the likeliest id of the range, the lowest of equal ones; kNone if none is allowed.
  uint32_t Best(IdRange range) const {
    uint32_t best = kNone;
    for (uint32_t id = range.begin; id < range.end; ++id) {
      if (best != kNone && !(logits[id] > logits[best])) continue;
      if (!std::isnan(logits[id]) && Allows(id)) best = id;
    }
    return best;
  }
  // Returns the logarithm of the sum of the range's exponentials. REQUIRES: `best` is its best.
  double LogSumExp(IdRange range, uint32_t best) const {
    const auto largest = static_cast<double>(logits[best]);
    double sum = 0.0;
    for (uint32_t id = range.begin; id < range.end; ++id) {
      if (Allows(id)) sum += std::exp(static_cast<double>(logits[id]) - largest);
    }
    return largest + std::log(sum);
  }
};

// Returns the times that may follow; *text: the other tokens that may.
IdRange TimesAfter(const TokenRules& rules, Span<const int32_t> chosen, IdRange* text) {
  const auto first_time = static_cast<uint32_t>(rules.no_timestamps_id) + 1;
  *text = {0, first_time - 1};
  IdRange times = {first_time, rules.vocab};
  const size_t n = chosen.size();
  if (n == 0) {
    *text = {};
    if (rules.latest_first_id < rules.vocab) times.end = rules.latest_first_id + 1;
    return times;
  }
  const bool follows_time = rules.IsTime(chosen[n - 1]);
  const bool follows_pair = follows_time && (n < 2 || rules.IsTime(chosen[n - 2]));
  if (follows_pair) {
    times.end = times.begin;
  } else if (follows_time) {
    text->begin = static_cast<uint32_t>(rules.end_id);
  }
  for (size_t i = n; i > 0; --i) {
    if (!rules.IsTime(chosen[i - 1])) continue;
    const bool ends_text = follows_time && !follows_pair;
    times.begin = static_cast<uint32_t>(chosen[i - 1]) + (ends_text ? 0 : 1);
    break;
  }
  return times;
}

}  // namespace

int32_t ChooseToken(const TokenRules& rules, Span<const int32_t> chosen, const float* logits) {
  const Choice choice{rules, logits, chosen.empty()};
  IdRange text = {0, rules.vocab}, times;
  if (rules.has_timestamps) times = TimesAfter(rules, chosen, &text);
  const uint32_t word = choice.Best(text);
  const uint32_t time = choice.Best(times);
  if (word == kNone && time == kNone) return rules.end_id;
  if (time == kNone) return static_cast<int32_t>(word);
  if (word == kNone || choice.LogSumExp(times, time) > static_cast<double>(logits[word])) {
    return static_cast<int32_t>(time);
  }
  return static_cast<int32_t>(word);
}

}  // namespace arn
