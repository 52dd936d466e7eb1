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
    if (rules.IsSuppressed(id) || std::isnan(logits[id])) return false;
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
      if (Allows(id)) best = id;
    }
    return best;
  }
  // Returns the sum of exp((logit - largest) / temperature) of the range.
  double SumExp(IdRange range, double largest, double temperature) const {
    double sum = 0.0;
    for (uint32_t id = range.begin; id < range.end; ++id) {
      if (Allows(id)) sum += Weight(id, largest, temperature);
    }
    return sum;
  }
  double Weight(uint32_t id, double largest, double temperature) const {
    return std::exp((static_cast<double>(logits[id]) - largest) / temperature);
  }
  // Returns the first id of the range at which *left, from which the weights are subtracted in
  // order, falls below 0; kNone: it does not.
  uint32_t Draw(IdRange range, double largest, double temperature, double* left) const {
    for (uint32_t id = range.begin; id < range.end; ++id) {
      if (!Allows(id)) continue;
      *left -= Weight(id, largest, temperature);
      if (*left < 0.0) return id;
    }
    return kNone;
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

// Tokens that the rules leave.
struct Candidates {
  IdRange text, times;
  uint32_t best = kNone;  // the likeliest; kNone: there is none
};

Candidates FindCandidates(const Choice& choice, Span<const int32_t> chosen) {
  Candidates found;
  found.text = {0, choice.rules.vocab};
  if (choice.rules.has_timestamps) found.times = TimesAfter(choice.rules, chosen, &found.text);
  found.best = choice.Best(found.text);
  const uint32_t time = choice.Best(found.times);
  if (time == kNone) return found;
  const auto largest = static_cast<double>(choice.logits[time]);
  if (found.best == kNone || largest + std::log(choice.SumExp(found.times, largest, 1.0)) >
                                 static_cast<double>(choice.logits[found.best])) {
    found.text = {};
    found.best = time;
  }
  return found;
}

}  // namespace

int32_t ChooseToken(const TokenRules& rules, Span<const int32_t> chosen, const float* logits) {
  const Candidates found = FindCandidates({rules, logits, chosen.empty()}, chosen);
  return found.best == kNone ? rules.end_id : static_cast<int32_t>(found.best);
}

RatedToken RateToken(const TokenRules& rules, Span<const int32_t> chosen, const float* logits,
                     float temperature, Random* random) {
  const Choice choice{rules, logits, chosen.empty()};
  const Candidates found = FindCandidates(choice, chosen);
  if (found.best == kNone) return {rules.end_id, 0.0};
  const auto largest = static_cast<double>(logits[found.best]);
  const auto sum = [&](double t) {
    return choice.SumExp(found.text, largest, t) + choice.SumExp(found.times, largest, t);
  };
  uint32_t id = found.best;
  if (temperature > 0.0f) {
    const auto t = static_cast<double>(temperature);
    double left = random->NextUnit() * sum(t);
    uint32_t drawn = choice.Draw(found.text, largest, t, &left);
    if (drawn == kNone) drawn = choice.Draw(found.times, largest, t, &left);
    if (drawn != kNone) id = drawn;  // else rounding left a rest
  }
  return {static_cast<int32_t>(id), static_cast<double>(logits[id]) - largest - std::log(sum(1.0))};
}

}  // namespace arn
