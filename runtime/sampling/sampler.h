// Sampler: chooses a token from logits. Applies the warpers in the order of transformers'
// generate(): temperature, top-k, top-p, min-p; then draws one random number. Temperature 0 is
// greedy.
#pragma once

#include <cstdint>

#include "kernels/contract/logits_ops.h"
#include "platform/base/diag.h"
#include "platform/base/layout.h"
#include "platform/base/span.h"
#include "runtime/sampling/random.h"

namespace arn {

struct SamplingOptions {
  float temperature = 0.0f;  // >= 0; 0: greedy
  uint32_t top_k = 0;        // 0: off
  float top_p = 1.0f;        // (0, 1]; 1: off
  float min_p = 0.0f;        // [0, 1); 0: off
  uint64_t seed = 0;
};

// kBadArgument names the field and the value.
Status CheckSampling(const SamplingOptions& options, Diag* diag);

struct SamplerPlan {
  Slice candidates;  // u32 [vocab]
  Slice weights;     // f32 [vocab]
};
Status PlanSampler(uint32_t vocab, Layout* layout, SamplerPlan* out);

class Sampler {
 public:
  void Init(const LogitsOps* ops, const SamplerPlan& plan, const Memory& memory, uint32_t vocab);
  // Sets the options and restarts the random numbers. REQUIRES: options passed CheckSampling.
  void Configure(const SamplingOptions& options);
  // Continues from another sampler's state: call Configure(its options()) first.
  void set_random_state(uint64_t state) { random_.set_state(state); }
  // Switches to random numbers that differ from those of the sampler this is a copy of, and from
  // its copies with another `number`. No effect when greedy.
  void Branch(uint32_t number);
  const SamplingOptions& options() const { return options_; }
  uint64_t random_state() const { return random_.state(); }

  // Returns the first 32 fractional bits of the next random numbers without consuming them.
  void PeekDraws(Span<uint32_t> out) const;
  // Consumes the random numbers of n sampled tokens.
  void SkipDraws(uint32_t n);

  // logits: f32 [vocab], not modified. The same logits, options and random numbers give the same
  // token on every machine.
  int32_t Sample(const float* logits);

 private:
  // Computes weights_ of candidates [first, first + n) and their sum. max: the largest logit.
  void Weigh(const float* logits, float max, uint32_t first, uint32_t n, double* sum);
  int32_t DrawFromAll(const float* logits, float max, double unit);
  // Each fills candidates_ with the ids that may be drawn and returns their number (at least 1):
  // ascending, except KeepTopK's. *wanted: the weight that top_p keeps.
  uint32_t CollectAtLeast(const float* logits, float threshold);
  uint32_t CollectHead(const float* logits, float max, double* wanted);
  uint32_t KeepTopK(const float* logits);
  // Keeps the best of n candidates that together hold the weight `wanted`.
  uint32_t KeepTopP(const float* logits, float max, double wanted, uint32_t n);

  const LogitsOps* ops_ = nullptr;
  uint32_t* candidates_ = nullptr;
  float* weights_ = nullptr;
  uint32_t vocab_ = 0;
  SamplingOptions options_;
  Random random_;
};

}  // namespace arn
