#include "runtime/session/recompute.h"

#include <cstring>

#include "platform/base/arith.h"

namespace arn {
namespace {

uint32_t CommonTokens(const int32_t* a, const int32_t* b, uint32_t most) {
  uint32_t n = 0;
  while (n < most && a[n] == b[n]) ++n;
  return n;
}

}  // namespace

void Recompute::SwitchToFallback(Status failure) {
  executor_.SwitchToFallback(failure);
  cache().ClearEdits();
}

Status Recompute::FallBack(Status failure) {
  const bool lost_logits = logits().MustRead() && logits().Has(0);
  SwitchToFallback(failure);
  logits().LoseBackend();
  if (core_.model.spec.encoder.exists()) return LoseEncoderOutputs();
  if (core_.plan.options.no_cache) return Status::kOk;
  const Status status = ComputeAnew(lost_logits);
  if (status == Status::kOk) return status;
  sequences_.ClearAll();
  cache().ClearEdits();
  const Diag inner = core_.diag;
  return core_.diag.Fail(Status::kDeviceLost, "%s; the tokens could not be recomputed: %s",
                         executor_.fallback_reason(), inner.text());
}

Status Recompute::LoseEncoderOutputs() {
  sequences_.ClearAll();
  cache().ClearEdits();
  return core_.diag.Fail(Status::kDeviceLost,
                         "%s; encoder outputs are lost with it: encode them again",
                         executor_.fallback_reason());
}

// Recomputes a prefix shared with an earlier sequence once and forks there. Sequences thus share
// pages as before and fit the same pool. Among sequences with an equally long common prefix the
// first is used: it was not forked after the point of divergence.
Status Recompute::ComputeAnew(bool wants_logits) {
  const uint32_t n = sequences_.size();
  for (uint32_t s = 0; s < n; ++s) {
    Sequence& sequence = sequences_.At(s);
    sequence.length = cache().length(s);
    sequence.shared = 0;
    for (uint32_t from = 0; from < s; ++from) {
      if (kHasAdapters && !SameAdapters(sequences_.AdaptersOf(from), sequences_.AdaptersOf(s))) {
        continue;
      }
      const uint32_t common = CommonTokens(sequences_.History(from), sequences_.History(s),
                                           Min(sequences_.At(from).length, sequence.length));
      if (common <= sequence.shared) continue;
      sequence.shared = common;
      sequence.shared_with = from;
    }
  }
  for (uint32_t s = 0; s < n; ++s) cache().Clear(s);
  for (uint32_t s = 0; s < n; ++s) {
    for (uint32_t end = 0; end != sequences_.At(s).length;) {
      end = sequences_.At(s).length;
      const auto parts_at = [&](uint32_t other) {
        const Sequence& o = sequences_.At(other);
        return o.shared_with == s && o.shared > cache().length(s) ? o.shared : UINT32_MAX;
      };
      for (uint32_t other = s + 1; other < n; ++other) end = Min(end, parts_at(other));
      const uint32_t before = cache().length(s);
      const bool is_last = wants_logits && end == sequences_.At(s).length;
      ARN_TRY(ComputeUpTo(s, end, is_last ? LogitRows::kLastOfEach : LogitRows::kNone));
      for (uint32_t other = s + 1; other < n; ++other) {
        const Sequence& o = sequences_.At(other);
        if (o.shared_with == s && o.shared == end && o.shared > before) {
          ARN_TRY(cache().Fork(s, other));
        }
      }
    }
  }
  return Status::kOk;
}

// Not cancellable; the runs that follow are.
Status Recompute::ComputeUpTo(uint32_t sequence, uint32_t end, LogitRows of_last) {
  int32_t* tokens = core_.memory.As<int32_t>(core_.plan.tokens);
  auto* rows = core_.memory.As<SequenceRows>(core_.plan.rows);
  while (cache().length(sequence) < end) {
    const uint32_t first = cache().length(sequence);
    const uint32_t most = Min(core_.chunk_rows, cache().TokensToSnapshot(sequence));
    Growth growth{sequence, Min(most, end - first)};
    // An image that is seen both ways runs in one chunk, as it did at first.
    const int32_t* left = sequences_.History(sequence) + first;
    if (core_.plan.image_mask.bytes != 0 && growth.n_tokens < end - first) {
      uint32_t n = growth.n_tokens;
      while (n > 0 && left[n - 1] < 0 && left[n] < 0) --n;
      if (n > 0) growth.n_tokens = n;
    }
    std::memcpy(tokens, left, growth.n_tokens * sizeof(int32_t));
    Status status = cache().Reserve(Span<const Growth>(&growth, 1));
    if (status != Status::kOk) return core_.diag.Fail(status, "not enough KV pages");
    *rows = {0, growth.n_tokens, first, cache().tables(sequence), 0};
    if (kHasAdapters) rows->adapters = sequences_.AdaptersOf(sequence);
    RunArgs args;
    args.edits = cache().edits();
    args.tokens = {tokens, growth.n_tokens};
    args.embeddings = sequences_.Embeddings();
    args.sequences = {rows, 1};
    const SessionPart part{sequence, {}};
    args.axis_positions = sequences_.AxisPositions(args, {&part, 1});
    RowMask mask;
    args.mask = sequences_.SeeImagesBothWays(args.tokens, first, &mask);
    args.logit_rows = first + growth.n_tokens == end ? of_last : LogitRows::kNone;
    status = executor_.Run(args);
    cache().ClearEdits();
    ARN_TRY(status);
    cache().Commit(Span<const Growth>(&growth, 1));
  }
  return Status::kOk;
}

}  // namespace arn
