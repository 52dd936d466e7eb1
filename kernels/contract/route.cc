#include "kernels/contract/route.h"

#include <cmath>

#include "platform/base/arith.h"

namespace arn {
namespace {

constexpr float kTaken = -1.0f;  // no score is negative

class Scores {
 public:
  Scores(const RouteParams& params, const float* correction, float* scores)
      : params_(params), correction_(correction), scores_(scores) {}

  // Returns what decides between experts.
  float ChoiceOf(uint32_t e) const {
    return correction_ == nullptr ? scores_[e] : scores_[e] + correction_[e];
  }

  // Returns the expert of [first, end) with the largest choice that is not taken, or `end`.
  uint32_t Best(uint32_t first, uint32_t end) const {
    uint32_t best = end;
    for (uint32_t e = first; e < end; ++e) {
      if (scores_[e] == kTaken) continue;
      if (best == end || ChoiceOf(e) > ChoiceOf(best)) best = e;
    }
    return best;
  }

  // Takes the experts outside of the chosen groups.
  void KeepBestGroups() {
    const uint32_t n = params_.n_groups, size = params_.n_experts / n;
    float sums[kMaxRouterGroups];
    for (uint32_t g = 0; g < n; ++g) {
      const uint32_t first = g * size, end = first + size;
      const uint32_t best = Best(first, end);
      const float score = scores_[best];
      sums[g] = ChoiceOf(best);
      scores_[best] = kTaken;
      sums[g] += ChoiceOf(Best(first, end));
      scores_[best] = score;
    }
    bool is_kept[kMaxRouterGroups] = {};
    for (uint32_t i = 0; i < params_.n_groups_chosen; ++i) {
      uint32_t best = n;
      for (uint32_t g = 0; g < n; ++g) {
        if (!is_kept[g] && (best == n || sums[g] > sums[best])) best = g;
      }
      is_kept[best] = true;
    }
    for (uint32_t e = 0; e < params_.n_experts; ++e) {
      if (!is_kept[e / size]) scores_[e] = kTaken;
    }
  }

 private:
  const RouteParams& params_;
  const float* correction_;
  float* scores_;
};

// RouteScore::kSparseMixer, as transformers' sparsemixer() at inference.
void MixSparsely(const RouteParams& params, const float* logits, float* topk) {
  const auto is_taken = [&](uint32_t e, uint32_t n_taken) {
    for (uint32_t i = 0; i < n_taken; ++i) {
      if (topk[i] == static_cast<float>(e)) return true;
    }
    return false;
  };
  for (uint32_t i = 0; i < params.n_chosen; ++i) {
    uint32_t best = params.n_experts;
    for (uint32_t e = 0; e < params.n_experts; ++e) {
      if (is_taken(e, i)) continue;
      if (best == params.n_experts || logits[e] > logits[best]) best = e;
    }
    const float most = logits[best];
    double total = 0.0;
    for (uint32_t e = 0; e < params.n_experts; ++e) {
      if (is_taken(e, i)) continue;
      const float distance = (most - logits[e]) / Max(std::fabs(logits[e]), most);
      if (distance > 2 * params.router_jitter) continue;
      total += std::exp(static_cast<double>(logits[e] - most));
    }
    topk[i] = static_cast<float>(best);
    topk[params.n_chosen + i] = static_cast<float>(1.0 / total);
  }
}

}  // namespace

void Route(const RouteParams& params, const float* correction, float* logits, float* topk) {
  if (params.route_score == RouteScore::kSparseMixer) return MixSparsely(params, logits, topk);
  const uint32_t n_experts = params.n_experts, n_chosen = params.n_chosen;
  const bool is_sigmoid = params.route_score == RouteScore::kSigmoid;
  float largest = logits[0];
  for (uint32_t e = 1; e < n_experts; ++e) largest = logits[e] > largest ? logits[e] : largest;
  double total = 0.0;
  for (uint32_t e = 0; e < n_experts; ++e) {
    logits[e] = is_sigmoid ? 1.0f / (1.0f + std::exp(-logits[e])) : std::exp(logits[e] - largest);
    total += static_cast<double>(logits[e]);
  }
  // A correction is added to probabilities, so they are needed before the choice.
  if (correction != nullptr && !is_sigmoid) {
    for (uint32_t e = 0; e < n_experts; ++e) {
      logits[e] = static_cast<float>(static_cast<double>(logits[e]) / total);
    }
    total = 1.0;
  }
  Scores scores(params, correction, logits);
  if (params.n_groups != 0) scores.KeepBestGroups();
  double chosen_total = 0.0;
  for (uint32_t i = 0; i < n_chosen; ++i) {
    const uint32_t best = scores.Best(0, n_experts);
    topk[i] = static_cast<float>(best);
    topk[n_chosen + i] = logits[best];
    chosen_total += static_cast<double>(logits[best]);
    logits[best] = kTaken;
  }
  if (is_sigmoid && !params.norm_topk_prob) return;
  if (params.norm_topk_prob) {
    // The bounds are of probabilities, which the scores are only up to `total`.
    const double whole = is_sigmoid ? 1.0 : total;
    chosen_total = Max(chosen_total + static_cast<double>(params.topk_epsilon) * whole,
                       static_cast<double>(params.topk_least) * whole);
  }
  const double divisor = params.norm_topk_prob ? chosen_total : total;
  for (uint32_t i = 0; i < n_chosen; ++i) {
    topk[n_chosen + i] = static_cast<float>(static_cast<double>(topk[n_chosen + i]) / divisor);
  }
}

}  // namespace arn
