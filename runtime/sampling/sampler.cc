#include "runtime/sampling/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "platform/base/arith.h"

namespace arn {
namespace {

// A batch of the sorted head of the distribution: top-p usually ends within the first.
constexpr uint32_t kTopPBatch = 32;
// Logits scanned at once while the top-k threshold rises.
constexpr uint32_t kTopKBlock = 2048;

// Higher logit first, lower id first among equals: the one order that all selections use.
struct Before {
  const float* logits;
  bool operator()(uint32_t a, uint32_t b) const {
    if (logits[a] != logits[b]) return logits[a] > logits[b];
    return a < b;
  }
};

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

void Sampler::PeekDraws(Span<uint32_t> out) const {
  Random random = random_;
  for (uint32_t& draw : out) draw = static_cast<uint32_t>(random.NextUnit() * 0x1p32);
}

void Sampler::SkipDraws(uint32_t n) {
  // Greedy choices draw nothing.
  for (uint32_t i = 0; i < n && options_.temperature != 0.0f; ++i) random_.NextUnit();
}

// Leaves the k best in candidates_, in no particular order. A heap of the k best so far has the
// worst of them on top, and its logit is the threshold below which a block's elements need no look.
void Sampler::KeepTopK(const float* logits, uint32_t* n) {
  const Before before{logits};
  const uint32_t k = Min(options_.top_k, vocab_);
  uint32_t* block = reinterpret_cast<uint32_t*>(weights_);  // free until the weights are computed
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
  *n = count;
}

uint32_t Sampler::CollectCandidates(const float* logits) {
  uint32_t n = 0;
  if (options_.top_k > 0 && options_.top_k < vocab_) {
    KeepTopK(logits, &n);
  } else {
    n = static_cast<uint32_t>(ops_->collect_at_least(
        logits, vocab_, -std::numeric_limits<float>::infinity(), candidates_, vocab_));
  }
  return n;
}

int32_t Sampler::Sample(const float* logits) {
  const uint32_t best = ops_->argmax(logits, vocab_);
  if (options_.temperature == 0.0f) return static_cast<int32_t>(best);
  const double unit = random_.NextUnit();
  const float max = logits[best];
  uint32_t n = CollectCandidates(logits);
  // Nothing but NaN: there is no distribution to draw from.
  if (n == 0 || !std::isfinite(max)) return static_cast<int32_t>(best);

  const float inverse_temperature = 1.0f / options_.temperature;
  auto weigh = [&](uint32_t first, uint32_t count) {
    for (uint32_t i = first; i < first + count; ++i) weights_[i] = logits[candidates_[i]];
    return ops_->exp_sum(weights_ + first, count, max, inverse_temperature);
  };
  if (options_.top_p < 1.0f) {
    // Weights of the whole distribution give the total; then its head is sorted out until it holds
    // top_p of it.
    const double wanted = weigh(0, n) * static_cast<double>(options_.top_p);
    // pop_heap takes what its order puts last; here that is the best.
    const Before before{logits};
    const auto worse = [before](uint32_t a, uint32_t b) { return before(b, a); };
    std::make_heap(candidates_, candidates_ + n, worse);
    uint32_t kept = 0;
    double mass = 0.0;
    while (kept < n && mass < wanted) {
      const uint32_t batch = Min(kTopPBatch, n - kept);
      for (uint32_t i = 0; i < batch; ++i) {
        std::pop_heap(candidates_, candidates_ + (n - kept - i), worse);
      }
      const uint32_t first = n - kept - batch;
      weigh(first, batch);
      uint32_t taken = 0;
      while (taken < batch && mass < wanted) {
        mass += static_cast<double>(weights_[n - kept - 1 - taken]);
        ++taken;
      }
      kept += taken;
    }
    kept = Max(kept, 1u);
    std::copy(candidates_ + (n - kept), candidates_ + n, candidates_);
    n = kept;
  }
  // One order whatever the selection was, so that a seed's draw does not depend on heap internals.
  std::sort(candidates_, candidates_ + n);
  weigh(0, n);
  double total = 0.0;
  for (uint32_t i = 0; i < n; ++i) {
    // The best has weight 1, so min-p compares with 1 * min_p.
    if (weights_[i] < options_.min_p) weights_[i] = 0.0f;
    total += static_cast<double>(weights_[i]);
  }
  double left = unit * total;
  uint32_t chosen = best;
  for (uint32_t i = 0; i < n; ++i) {
    if (weights_[i] == 0.0f) continue;
    chosen = candidates_[i];
    left -= static_cast<double>(weights_[i]);
    if (left < 0.0) break;
  }
  return static_cast<int32_t>(chosen);
}

}  // namespace arn
