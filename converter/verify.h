// --verify: how far the written bundle is from the unquantised weights.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace arn::convert {

struct VerifyOptions {
  std::filesystem::path bundle;     // the one to judge
  std::filesystem::path reference;  // the same checkpoint in f32
  // Text to run, tokenised by the bundle; empty: a built-in English text. A bundle without a
  // tokenizer runs pseudo-random ids instead, the same ones every time.
  std::string text;
  uint32_t max_tokens = 512;  // a longer text is cut
  uint32_t n_threads = 0;     // 0: the library's default
};

// Both bundles teacher-forced over the same tokens, KV in f32.
struct VerifyResult {
  uint32_t n_tokens = 0;
  double max_logit_error = 0;  // max |logit - reference logit| over all positions and tokens
  double mean_kl = 0;          // KL(reference || bundle) in nats, mean over positions
  double top1_agreement = 0;   // share of positions with the same most likely token, 0..1
  double perplexity = 0;       // of the tokens after the first
  double reference_perplexity = 0;
};

// Throws ConvertError with the library's own sentence when a bundle cannot be run.
VerifyResult Verify(const VerifyOptions& options,
                    const std::function<void(uint64_t done, uint64_t total)>& on_progress);

}  // namespace arn::convert
