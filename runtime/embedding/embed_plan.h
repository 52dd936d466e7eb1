// EmbedPlan: every byte of an embedder, decided before any is allocated.
#pragma once

#include <cstdint>

#include "platform/base/diag.h"
#include "platform/base/status.h"
#include "runtime/memory/whole_input_plan.h"
#include "runtime/model/model.h"

namespace arn {

struct EmbedOptions {
  uint32_t max_tokens = 0;    // of a text, special tokens included; 0: the model's
  uint32_t batch_tokens = 0;  // of the texts of a run; 0: max_tokens, at least 512
  uint32_t max_texts = 0;     // of a run; 0: 32
  uint32_t n_threads = 0;     // 0: as many as performance CPUs
  uint32_t width = 0;         // to which vectors are cut; 0: whole
  uint64_t text_bytes = 0;    // of a text with its prompt, or of a pair; 0: by max_tokens
};

struct EmbedPlan : WholeInputPlan {
  const Backend* self_test = nullptr;  // computes what a device's self-test expects
  EmbedOptions options;                // without zeros
  Slice tokens;     // int32 [batch_tokens + max_tokens]: of a run, and a text that may not fit it
  Slice sequences;  // SequenceRows [max_texts]
  Slice ids[2];     // int32 [max_tokens], of the text, or of a pair's texts
  Slice text;       // a prompt and a text, or a pair
  Slice scratch;    // Tokenizer::Encode; empty without a tokenizer
  Slice results;    // f32 [max_texts, width of the result]: read from a device; empty on the host

  // Floats that a text gives: a vector's width, or the number of scores.
  uint32_t ResultWidth(const PoolingSpec& pooling) const;
};

// True if the planned backend computes on a device.
bool IsEmbedderOnDevice(const EmbedPlan& plan);

// object_bytes: sizeof(Embedder). self_test: of devices. kUnsupported: the model makes no vectors
// or scores, or the backend cannot run it; kBadArgument: an option out of its range.
Status PlanEmbedder(const Model& model, const Backend* backend, const Backend* self_test,
                    const EmbedOptions& options, uint64_t object_bytes, EmbedPlan* out, Diag* diag);

}  // namespace arn
