// Sampler: chooses a token from logits. Applies the warpers in the order of transformers'
// generate(): temperature, top-k, top-p, min-p, typical p; then XTC and Mirostat 2; then draws.
// Temperature 0 is greedy. One random number per token, with XTC two.
#pragma once

#include <cstdint>

#include "kernels/contract/logits_ops.h"
#include "platform/base/diag.h"
#include "platform/base/layout.h"
#include "platform/base/span.h"
#include "runtime/sampling/random.h"
#include "runtime/sampling/sampling_options.h"

namespace arn {

struct SamplerPlan {
  Slice candidates;  // u32 [vocab]
  Slice weights;     // f32 [vocab]
};
Status PlanSampler(uint32_t vocab, Layout* layout, SamplerPlan* out);

// State of a sampler that changes from token to token.
struct SamplerState {
  uint64_t random = 0;
  float mirostat_mu = 0.0f;  // largest surprise allowed next, in bits

  bool operator==(const SamplerState&) const = default;
};

class Sampler {
 public:
  // lists: memory for the elements of the options' lists, SamplingLimits::n_words of them.
  void Init(const LogitsOps* ops, const SamplerPlan& plan, const Memory& memory, uint32_t vocab,
            uint32_t* lists = nullptr);
  // Copies the options and restarts the random numbers. REQUIRES: options passed CheckSampling;
  // their lists lie elsewhere, or are those of this sampler.
  void Configure(const SamplingOptions& options);
  // Continues from another sampler's state: call Configure(its options()) first.
  void set_state(const SamplerState& state) {
    random_.set_state(state.random);
    mirostat_mu_ = state.mirostat_mu;
  }
  // Switches to random numbers that differ from those of the sampler this is a copy of, and from
  // its copies with another `number`. No effect when greedy.
  void Branch(uint32_t number);
  const SamplingOptions& options() const { return options_; }
  SamplerState state() const { return {random_.state(), mirostat_mu_}; }
  // The options' IsGreedy(), RunsOnDevice() and Processor() != null.
  bool is_greedy() const { return options_.IsGreedy(); }
  bool runs_on_device() const { return runs_on_device_; }
  bool has_processors() const { return has_processors_; }
  // True if every token may be drawn, with its probability at the temperature.
  bool draws_from_all() const;
  // True if the argmax of the logits is all that the choice needs.
  bool takes_best() const { return is_greedy() && runs_on_device_; }
  // Memory of the lists' elements.
  uint32_t* lists() const { return lists_; }

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
  // As KeepTopP, for typical_p. weights_ are those of the candidates.
  uint32_t KeepTypical(const float* logits, float max, uint32_t n);
  // Removes the most likely of n candidates as the options for XTC say. Returns how many are left.
  uint32_t ExcludeTop(const float* logits, uint32_t n);
  // Sets weights_ of surprising candidates to 0.
  void CutSurprising(uint32_t n);
  // Removes candidates of weight 0; returns how many are left.
  uint32_t Compact(uint32_t n);

  const LogitsOps* ops_ = nullptr;
  uint32_t* candidates_ = nullptr;
  float* weights_ = nullptr;
  uint32_t vocab_ = 0;
  uint32_t* lists_ = nullptr;
  SamplingOptions options_;
  float mirostat_mu_ = 0.0f;
  bool runs_on_device_ = true;
  bool has_processors_ = false;
  Random random_;
};

}  // namespace arn
