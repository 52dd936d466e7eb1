// Stored device self-test of a bundle (fbs::SelfTest): expected logits for a few tokens.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/base/diag.h"
#include "platform/base/span.h"
#include "runtime/bundle/bundle.h"

namespace arn {

inline constexpr uint32_t kMaxTestRuns = 4;
inline constexpr uint32_t kMaxTestTokens = 64;

struct StoredTest {
  Span<const int32_t> ids;  // of all runs, concatenated; empty: no test
  Span<const uint32_t> run_tokens;
  Span<const float> scales;      // one per run
  Span<const std::byte> logits;  // i16 [runs, vocab], 2-byte aligned
  uint64_t model_hash = 0;       // identity of the model in saved states

  // Dequantises the logits after the last token of a run into f32 [vocab].
  void Logits(uint32_t run, uint32_t vocab, float* out) const;
};

// kBadBundle: inconsistent counts, ids outside the vocabulary, more tokens than the context or
// kMaxTestTokens, or a segment of the wrong size.
Status ReadSelfTest(const Bundle& bundle, uint32_t vocab, uint32_t max_context, StoredTest* out,
                    Diag* diag);

// Names for a message: what was computed, where, and whose values are right.
struct DeviceResults {
  const char* device;    // its name
  const char* one;       // "logit of token"
  const char* all;       // "logits"
  const char* expected;  // "bundle's"
};
// kDevice if a value differs from the expected one by more than any two backends do, or if they
// differ by more on average. The message names them.
Status CompareResults(const DeviceResults& what, const float* expected, const float* found,
                      uint32_t n, Diag* diag);

}  // namespace arn
