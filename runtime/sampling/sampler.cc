#include "runtime/sampling/sampler.h"

#include <algorithm>
#include <cmath>
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

Status CheckSampling(const SamplingOptions& options, Diag* diag) {
  if (!(options.temperature >= 0.0f) || !std::isfinite(options.temperature)) {
    return diag->Fail(Status::kBadArgument, "temperature is %g, expected 0 or more",
                      static_cast<double>(options.temperature));
  }
  if (!(options.top_p > 0.0f && options.top_p <= 1.0f)) {
    return diag->Fail(Status::kBadArgument, "top_p is %g, expected above 0 and at most 1",
                      static_cast<double>(options.top_p));
  }
  if (!(options.min_p >= 0.0f && options.min_p < 1.0f)) {
    return diag->Fail(Status::kBadArgument, "min_p is %g, expected 0 or more and below 1",
                      static_cast<double>(options.min_p));
  }
  return Status::kOk;
}

Status PlanSampler(uint32_t vocab, Layout* layout, SamplerPlan* out) {
  ARN_ASSIGN(out->candidates, layout->AddArray(Region::kIo, vocab, sizeof(uint32_t)));
  ARN_ASSIGN(out->weights, layout->AddArray(Region::kIo, vocab, sizeof(float)));
  return Status::kOk;
}

void Sampler::Init(const LogitsOps* ops, const SamplerPlan& plan, const Memory& memory,
                   uint32_t vocab) {
  ops_ = ops;
  candidates_ = memory.As<uint32_t>(plan.candidates);
  weights_ = memory.As<float>(plan.weights);
  vocab_ = vocab;
}

void Sampler::Configure(const SamplingOptions& options) {
  options_ = options;
  random_.Seed(options.seed);
}

void Sampler::Branch(uint32_t number) {
  if (options_.temperature != 0.0f) random_.Branch(number);
}

void Sampler::PeekDraws(Span<uint32_t> out) const {
  Random random = random_;
  for (uint32_t& draw : out) draw = static_cast<uint32_t>(random.NextUnit() * 0x1p32);
}

void Sampler::SkipDraws(uint32_t n) {
  // Greedy sampling consumes no random numbers.
  for (uint32_t i = 0; i < n && options_.temperature != 0.0f; ++i) random_.NextUnit();
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

int32_t Sampler::Sample(const float* logits) {
  const uint32_t best = ops_->argmax(logits, vocab_);
  if (options_.temperature == 0.0f) return static_cast<int32_t>(best);
  const double unit = random_.NextUnit();
  const float max = logits[best];
  // Only NaN, or no distribution to sample from.
  if (!std::isfinite(max)) return static_cast<int32_t>(best);

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
  } else {
    return DrawFromAll(logits, max, unit);
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
  return static_cast<int32_t>(candidates_[DrawInOrder(weights_, n, unit)]);
}

}  // namespace arn
