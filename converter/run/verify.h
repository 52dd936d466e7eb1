// --verify: measures the error of a written bundle against the unquantised weights.
#pragma once

#include <cstdint>
#include <string>

#include "converter/convert/convert.h"
#include "converter/run/streamed_model.h"

namespace arn::convert {

struct VerifyOptions {
  ConvertOptions convert;  // the conversion that wrote convert.output, the bundle to verify
  // Text to run, tokenised by the bundle; empty: a built-in English text. Without a tokenizer, runs
  // pseudo-random ids instead, the same every time.
  std::string text;
  uint32_t max_tokens = 512;  // truncates longer texts
  uint32_t n_threads = 0;     // 0: the library's default
};

// Results with both bundles teacher-forced over the same tokens, with an f32 KV cache.
struct VerifyResult {
  uint32_t n_tokens = 0;
  double max_logit_error = 0;  // max |logit - reference logit| over all positions and tokens
  double mean_kl = 0;          // KL(reference || bundle) in nats, mean over positions
  double top1_agreement = 0;   // share of positions with the same argmax, 0..1
  double perplexity = 0;       // of the tokens after the first
  double reference_perplexity = 0;
};

// Keeps one unquantised matrix in memory at a time (StreamedModel). Throws ConvertError with the
// library's own sentence if the bundle cannot run.
VerifyResult Verify(const VerifyOptions& options, const StreamedModel::OnProgress& on_progress);

}  // namespace arn::convert
