// LogitsProcessors: change a copy of the logits before the sampler sees them, by the sequence's
// history and the options (transformers' logits processors). The chain and its order are in
// processors.cc. A session plans the copy only if asked to (SessionOptions::logits_processors).
#pragma once

#include <cstdint>

#include "platform/base/layout.h"
#include "platform/base/span.h"
#include "runtime/sampling/sampling_options.h"

namespace arn {

struct ProcessorsPlan {
  Slice row;    // f32 [vocab]
  Slice marks;  // u32 [vocab]
};
Status PlanProcessors(uint32_t vocab, Layout* layout, ProcessorsPlan* out);

// Input of the processors besides the options and the logits.
struct ProcessorInput {
  Span<const int32_t> ids;            // the sequence's tokens, prompt included
  uint32_t n_generated = 0;           // of them, chosen since the last prompt
  Span<const uint32_t> eos_ids;       // the model's stop tokens
  Span<const int32_t> extra_eos_ids;  // the caller's
  bool is_last = false;               // the token to choose is the last that may be generated
};

class LogitsProcessors {
 public:
  void Init(const ProcessorsPlan& plan, const Memory& memory, uint32_t vocab);
  // Returns the processed logits: f32 [vocab], valid until the next call. logits: not modified;
  // `offset` is subtracted from each first.
  // REQUIRES: memory was planned; the options passed CheckSampling.
  const float* Apply(const SamplingOptions& options, const ProcessorInput& input,
                     const float* logits, float offset = 0.0f);

 private:
  float* row_ = nullptr;
  uint32_t* marks_ = nullptr;  // zero between calls
  uint32_t vocab_ = 0;
};

}  // namespace arn
