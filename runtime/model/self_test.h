// What a bundle says that a few tokens come to (fbs::SelfTest): a device is held against it before
// a session is handed out.
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
  Span<const int32_t> ids;  // of all runs, which follow each other; empty: there is no test
  Span<const uint32_t> run_tokens;
  Span<const float> scales;      // one for each run
  Span<const std::byte> logits;  // i16 [runs, vocab], 2-byte aligned
  uint64_t model_hash = 0;       // what states are tied to

  // The logits behind the last token of a run, into f32 [vocab].
  void Logits(uint32_t run, uint32_t vocab, float* out) const;
};

// kBadBundle: counts that do not agree, ids that the vocabulary has not, more tokens than the
// context or kMaxTestTokens, a segment of another size.
Status ReadSelfTest(const Bundle& bundle, uint32_t vocab, uint32_t max_context, StoredTest* out,
                    Diag* diag);

}  // namespace arn
