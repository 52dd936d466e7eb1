#include "runtime/sampling/sampler.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "platform/base/arith.h"
#include "runtime/sampling/draw.h"

namespace arn {
namespace {

// Batch of the sorted head of the distribution: top-p usually ends within the first.
constexpr uint32_t kTopPBatch = 32;
// Logits scanned between updates of the top-k threshold.
constexpr uint32_t kTopKBlock = 2048;
// Depths below the best logit, in units of the temperature, searched for the tokens that top_p
// keeps.
constexpr float kHeadDepths[] = {4.0f, 10.0f, 20.0f};
constexpr double kSurely = 1.0 + 1e-9;

// Higher logit first, ties by lower id: the single order of all selections.
struct Before {
  const float* logits;
  bool operator()(uint32_t a, uint32_t b) const {
    if (logits[a] != logits[b]) return logits[a] > logits[b];
    return a < b;
  }
};

// Logit below which a token's weight is certainly less than min_p.
float MinPThreshold(const SamplingOptions& options, float max) {
  const double depth = std::log(static_cast<double>(options.min_p)) - 1e-3;
  return static_cast<float>(static_cast<double>(max) +
                            depth * static_cast<double>(options.temperature));
}

}  // namespace

Status PlanSampler(uint32_t vocab, Layout* layout, SamplerPlan* out) {
  ARN_ASSIGN(out->candidates, layout->AddArray(Region::kIo, vocab, sizeof(uint32_t)));
  ARN_ASSIGN(out->weights, layout->AddArray(Region::kIo, vocab, sizeof(float)));
  return Status::kOk;
}

void Sampler::Init(const LogitsOps* ops, const SamplerPlan& plan, const Memory& memory,
                   uint32_t vocab, uint32_t* lists) {
  ops_ = ops;
  lists_ = lists;
  candidates_ = memory.As<uint32_t>(plan.candidates);
  weights_ = memory.As<float>(plan.weights);
  vocab_ = vocab;
}

void Sampler::Configure(const SamplingOptions& options) {
  options_ = options;
  uint32_t* end = lists_;
  for (const SamplingOption& option : SamplingOptionTable()) {
    if (!option.is_list()) continue;
    const Span<const uint32_t> words = option.WordsOf(options);
    if (!words.empty() && words.data() != end) {
      std::memmove(end, words.data(), words.size() * sizeof(uint32_t));
    }
    option.Set({end, words.size()}, &options_);
    end += words.size();
  }
  runs_on_device_ = options.RunsOnDevice();
  has_processors_ = options.Processor() != nullptr;
  random_.Seed(options.seed);
  mirostat_mu_ = 2.0f * options.mirostat_tau;
}

void Sampler::Branch(uint32_t number) {
  if (!is_greedy()) random_.Branch(number);
}

bool Sampler::draws_from_all() const {
  return !is_greedy() && (options_.top_k == 0 || options_.top_k >= vocab_) &&
         options_.top_p >= 1.0f && options_.min_p == 0.0f && options_.typical_p >= 1.0f &&
         options_.xtc_probability == 0.0f && options_.mirostat_tau == 0.0f;
}

void Sampler::PeekDraws(Span<uint32_t> out) const {
  Random random = random_;
  for (uint32_t& draw : out) draw = static_cast<uint32_t>(random.NextUnit() * 0x1p32);
}

void Sampler::SkipDraws(uint32_t n) {
  // Greedy sampling consumes no random numbers.
  for (uint32_t i = 0; i < n && !is_greedy(); ++i) random_.NextUnit();
}

// Leaves the k best in candidates_, unordered. A heap of the k best so far has the worst on top;
// its logit is the threshold below which elements of a block are skipped.
uint32_t Sampler::KeepTopK(const float* logits) {
  const Before before{logits};
  const uint32_t k = Min(options_.top_k, vocab_);
  uint32_t* block = reinterpret_cast<uint32_t*>(weights_);  // unused until the weights are computed
  uint32_t count = 0;
  float threshold = -std::numeric_limits<float>::infinity();
  for (uint32_t first = 0; first < vocab_; first += kTopKBlock) {
    const uint32_t size = Min(kTopKBlock, vocab_ - first);
    const size_t found = ops_->collect_at_least(logits + first, size, threshold, block, size);
    for (size_t i = 0; i < found; ++i) {
      const uint32_t id = first + block[i];
      if (count < k) {
        candidates_[count++] = id;
        std::push_heap(candidates_, candidates_ + count, before);
      } else if (before(id, candidates_[0])) {
        std::pop_heap(candidates_, candidates_ + count, before);
        candidates_[count - 1] = id;
        std::push_heap(candidates_, candidates_ + count, before);
      }
    }
    if (count == k) threshold = logits[candidates_[0]];
  }
  return count;
}

void Sampler::Weigh(const float* logits, float max, uint32_t first, uint32_t n, double* sum) {
  for (uint32_t i = first; i < first + n; ++i) weights_[i] = logits[candidates_[i]];
  *sum = ops_->exp_sum(weights_ + first, n, max, 1.0f / options_.temperature);
}

// A NaN logit has weight 0, so weights_[id] is valid for every token.
int32_t Sampler::DrawFromAll(const float* logits, float max, double unit) {
  BlockSums blocks;
  blocks.block = BlockSums::BlockOf(vocab_);
  for (uint32_t first = 0, b = 0; first < vocab_; first += blocks.block, ++b) {
    const uint32_t n = Min(blocks.block, vocab_ - first);
    std::copy(logits + first, logits + first + n, weights_ + first);
    blocks.sums[b] = ops_->exp_sum(weights_ + first, n, max, 1.0f / options_.temperature);
  }
  uint32_t id;
  if (!DrawByBlocks(weights_, vocab_, blocks, unit, &id)) id = DrawInOrder(weights_, vocab_, unit);
  return static_cast<int32_t>(id);
}

// Collects a superset of the best tokens that together hold more than top_p of the weight.
uint32_t Sampler::CollectHead(const float* logits, float max, double* wanted) {
  std::copy(logits, logits + vocab_, weights_);
  *wanted = ops_->exp_sum(weights_, vocab_, max, 1.0f / options_.temperature) *
            static_cast<double>(options_.top_p);
  for (const float depth : kHeadDepths) {
    const auto n = static_cast<uint32_t>(ops_->collect_at_least(
        logits, vocab_, max - depth * options_.temperature, candidates_, vocab_));
    double mass = 0.0;
    for (uint32_t i = 0; i < n; ++i) mass += static_cast<double>(weights_[candidates_[i]]);
    // Strictly more, by a margin for the different order of summation.
    if (mass > *wanted * kSurely) return n;
  }
  return CollectAtLeast(logits, -std::numeric_limits<float>::infinity());
}

uint32_t Sampler::CollectAtLeast(const float* logits, float threshold) {
  return static_cast<uint32_t>(
      ops_->collect_at_least(logits, vocab_, threshold, candidates_, vocab_));
}

// Sorts the best of n candidates to the end until they hold the mass, then moves them to the front.
uint32_t Sampler::KeepTopP(const float* logits, float max, double wanted, uint32_t n) {
  // pop_heap removes the maximum of its order; inverted, that is the best.
  const Before before{logits};
  const auto worse = [before](uint32_t a, uint32_t b) { return before(b, a); };
  std::make_heap(candidates_, candidates_ + n, worse);
  uint32_t kept = 0;
  double mass = 0.0, sum;
  while (kept < n && mass < wanted) {
    const uint32_t batch = Min(kTopPBatch, n - kept);
    for (uint32_t i = 0; i < batch; ++i) {
      std::pop_heap(candidates_, candidates_ + (n - kept - i), worse);
    }
    Weigh(logits, max, n - kept - batch, batch, &sum);
    uint32_t taken = 0;
    while (taken < batch && mass < wanted) {
      mass += static_cast<double>(weights_[n - kept - 1 - taken]);
      ++taken;
    }
    kept += taken;
  }
  kept = Max(kept, 1u);
  std::copy(candidates_ + (n - kept), candidates_ + n, candidates_);
  return kept;
}

uint32_t Sampler::Compact(uint32_t n) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < n; ++i) {
    if (weights_[i] == 0.0f) continue;
    candidates_[kept] = candidates_[i];
    weights_[kept++] = weights_[i];
  }
  return kept;
}

// TypicalLogitsWarper of transformers (Meister et al. 2022, "Locally Typical Sampling"). Tokens as
// typical as the last one kept are kept too.
uint32_t Sampler::KeepTypical(const float* logits, float max, uint32_t n) {
  double sum = 0.0, entropy = 0.0;
  for (uint32_t i = 0; i < n; ++i) sum += static_cast<double>(weights_[i]);
  const double log_sum = std::log(sum), scale = 1.0 / static_cast<double>(options_.temperature);
  const auto log_p = [&](uint32_t id) {
    return static_cast<double>(logits[id] - max) * scale - log_sum;
  };
  for (uint32_t i = 0; i < n; ++i) {
    entropy -= static_cast<double>(weights_[i]) / sum * log_p(candidates_[i]);
  }
  const auto distance = [&](uint32_t id) { return std::fabs(-log_p(id) - entropy); };
  // pop_heap removes the most typical.
  const auto after = [&](uint32_t a, uint32_t b) {
    const double x = distance(a), y = distance(b);
    return x != y ? x > y : a > b;
  };
  std::make_heap(candidates_, candidates_ + n, after);
  uint32_t kept = 0;
  double mass = 0.0, last = 0.0;
  while (kept < n) {
    const double next = distance(candidates_[0]);
    if (mass >= static_cast<double>(options_.typical_p) && next != last) break;
    last = next;
    mass += std::exp(log_p(candidates_[0]));
    std::pop_heap(candidates_, candidates_ + (n - kept), after);
    ++kept;
  }
  std::copy(candidates_ + (n - kept), candidates_ + n, candidates_);
  std::sort(candidates_, candidates_ + kept);
  return kept;
}

// The XTC sampler of ggml-org.
uint32_t Sampler::ExcludeTop(const float* logits, uint32_t n) {
  const double chance = random_.NextUnit();
  if (chance > static_cast<double>(options_.xtc_probability)) return n;
  double sum = 0.0;
  for (uint32_t i = 0; i < n; ++i) sum += static_cast<double>(weights_[i]);
  const double least = static_cast<double>(options_.xtc_threshold) * sum;
  const Before before{logits};
  uint32_t n_top = 0, last = 0;
  for (uint32_t i = 0; i < n; ++i) {
    if (static_cast<double>(weights_[i]) < least) continue;
    if (n_top++ == 0 || before(candidates_[last], candidates_[i])) last = i;
  }
  if (n_top < 2 || options_.xtc_threshold > 0.5f) return n;
  for (uint32_t i = 0; i < n; ++i) {
    if (i != last && static_cast<double>(weights_[i]) >= least) weights_[i] = 0.0f;
  }
  return Compact(n);
}

// The Mirostat 2 sampler of ggml-org (Basu et al. 2021, "Mirostat").
void Sampler::CutSurprising(uint32_t n) {
  double sum = 0.0;
  uint32_t best = 0;
  for (uint32_t i = 0; i < n; ++i) {
    sum += static_cast<double>(weights_[i]);
    if (weights_[i] > weights_[best]) best = i;
  }
  const double least = sum * std::exp2(-static_cast<double>(mirostat_mu_));
  for (uint32_t i = 0; i < n; ++i) {
    if (i != best && static_cast<double>(weights_[i]) < least) weights_[i] = 0.0f;
  }
}

int32_t Sampler::Sample(const float* logits) {
  const uint32_t best = ops_->argmax(logits, vocab_);
  if (is_greedy()) return static_cast<int32_t>(best);
  const double unit = random_.NextUnit();
  const float max = logits[best];
  // Only NaN, or no distribution to sample from.
  if (!std::isfinite(max)) return static_cast<int32_t>(best);

  const bool has_typical = options_.typical_p<1.0f, has_mirostat = options_.mirostat_tau> 0.0f;
  const bool has_xtc = options_.xtc_probability > 0.0f;
  const bool has_more = has_typical || has_xtc || has_mirostat;
  const bool has_top_k = options_.top_k > 0 && options_.top_k < vocab_;
  const bool has_top_p = options_.top_p < 1.0f;
  double wanted = 0.0;
  uint32_t n = 0;
  if (has_top_k) {
    n = KeepTopK(logits);
    if (has_top_p) {
      Weigh(logits, max, 0, n, &wanted);
      wanted *= static_cast<double>(options_.top_p);
    }
  } else if (has_top_p) {
    n = CollectHead(logits, max, &wanted);
  } else if (options_.min_p > 0.0f) {
    n = CollectAtLeast(logits, MinPThreshold(options_, max));
  } else if (!has_more) {
    return DrawFromAll(logits, max, unit);
  } else {
    n = CollectAtLeast(logits, std::numeric_limits<float>::lowest());
  }
  if (has_top_p) n = KeepTopP(logits, max, wanted, n);
  // Fixes the order after selection, so that the draw does not depend on heap internals.
  if (has_top_k || has_top_p) std::sort(candidates_, candidates_ + n);
  double sum;
  Weigh(logits, max, 0, n, &sum);
  for (uint32_t i = 0; i < n; ++i) {
    // The best token has weight 1, so min-p compares with 1 * min_p.
    if (weights_[i] < options_.min_p) weights_[i] = 0.0f;
  }
  if (!has_more) return static_cast<int32_t>(candidates_[DrawInOrder(weights_, n, unit)]);

  n = Compact(n);
  if (has_typical) {
    n = KeepTypical(logits, max, n);
    Weigh(logits, max, 0, n, &sum);
  }
  if (has_xtc) n = ExcludeTop(logits, n);
  if (has_mirostat) CutSurprising(n);
  const uint32_t drawn = DrawInOrder(weights_, n, unit);
  if (has_mirostat) {
    sum = 0.0;
    for (uint32_t i = 0; i < n; ++i) sum += static_cast<double>(weights_[i]);
    const double surprise = -std::log2(static_cast<double>(weights_[drawn]) / sum);
    const double error = surprise - static_cast<double>(options_.mirostat_tau);
    mirostat_mu_ = static_cast<float>(static_cast<double>(mirostat_mu_) -
                                      static_cast<double>(options_.mirostat_eta) * error);
  }
  return static_cast<int32_t>(candidates_[drawn]);
}

}  // namespace arn
