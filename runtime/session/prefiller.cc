#include "runtime/session/prefiller.h"

#include <cstring>

#include "platform/base/arith.h"
#include "runtime/session/timer.h"

namespace arn {
namespace {

bool HasRelativePositions(const Program& program) {
  for (const Step& step : program.steps) {
    const auto* attention = step.If<AttentionParams>();
    if (attention != nullptr && attention->relative_position_bias != kNoWeight) return true;
  }
  return false;
}

}  // namespace

Status Prefiller::NextChunk(uint32_t sequence, size_t left, uint32_t most, size_t* out_tokens) {
  ARN_TRY(runner_.MakeRoomForOne(sequence));
  const size_t room = cache().capacity() - sequences_.Length(sequence);
  *out_tokens = Min(Min<size_t>(most, left), room);
  return Status::kOk;
}

bool Prefiller::IsEnded(uint64_t done, uint64_t total) {
  if (on_chunk_ == nullptr) return false;
  const InCallback in_callback(&core_);
  return on_chunk_(on_chunk_user_, done, total) != 0;
}

Status Prefiller::KeepImagesWhole(Span<const int32_t> ids, size_t* n) const {
  if (core_.plan.image_mask.bytes == 0 || *n == ids.size() || ids[*n - 1] >= 0 || ids[*n] >= 0) {
    return Status::kOk;
  }
  size_t first = *n - 1, end = *n;
  while (first > 0 && ids[first - 1] < 0) --first;
  if (first > 0) {
    *n = first;
    return Status::kOk;
  }
  while (end < ids.size() && ids[end] < 0) ++end;
  return core_.diag.Fail(Status::kBadArgument,
                         "an image of %zu tokens, which attend to each other in both directions, "
                         "needs a prefill_chunk of as many; it is %u",
                         end, core_.plan.options.prefill_chunk);
}

Status Prefiller::Prefill(Span<const int32_t> ids, size_t marked) {
  ARN_TRY(sequences_.CheckIds(ids));
  return PrefillMixed(ids, marked);
}

Status Prefiller::CheckPrompt(Span<const int32_t> ids) {
  const uint32_t selected = sequences_.selected();
  if (ids.empty()) return core_.diag.Fail(Status::kBadArgument, "no tokens to prefill");
  ARN_TRY(sequences_.CheckRoom(selected, ids.size()));
  // Before pages are reserved, which drops what only the last token sees, should it have to run
  // again.
  return runner_.HeedCancel(selected);
}

Status Prefiller::RunChunk(Span<const int32_t> ids, size_t marked, size_t* done) {
  const uint32_t selected = sequences_.selected();
  if (*done == marked && sequences_.At(selected).n_pending == 0) {
    cache().KeepSnapshot(selected, true);
  }
  const Span<const int32_t> left = ids.subspan(*done, ids.size() - *done);
  size_t n = 0;
  ARN_TRY(NextChunk(selected, left.size(), core_.chunk_rows, &n));
  ARN_TRY(runner_.RunPending(selected, 1));
  n = Min<size_t>(n, runner_.RunTokens(selected) - sequences_.At(selected).n_pending);
  if (*done < marked && cache().snapshots().is_on()) n = Min(n, marked - *done);
  ARN_TRY(KeepImagesWhole(left, &n));
  const SessionPart part{selected, left.subspan(0, n)};
  // A cancelled call must leave logits, or a state they can be recomputed from.
  const bool needs_logits =
      n == left.size() || !(core_.plan.options.no_cache ||
                            cache().CanRewindFrom(sequences_.length() + static_cast<uint32_t>(n)));
  ARN_TRY(runner_.Run(Span<const SessionPart>(&part, 1),
                      needs_logits ? LogitRows::kLastOfEach : LogitRows::kNone));
  sequences_.At(selected).n_generated = 0;
  core_.stats.prefill_tokens += n;
  *done += n;
  return Status::kOk;
}

Status Prefiller::PrefillMixed(Span<const int32_t> ids, size_t marked) {
  ARN_TRY(CheckPrompt(ids));
  Timer timer(&core_.stats.prefill_ns);
  for (size_t done = 0; done < ids.size();) {
    ARN_TRY(RunChunk(ids, marked, &done));
    if (IsEnded(done, ids.size()) && done < ids.size()) {
      return core_.diag.Fail(Status::kCancelled, "ended by the callback after %zu of %zu tokens",
                             done, ids.size());
    }
  }
  return Status::kOk;
}

Status Prefiller::PrefillFirstChunk(Span<const int32_t> ids, size_t marked, size_t* out_tokens) {
  *out_tokens = 0;
  ARN_TRY(CheckPrompt(ids));
  Timer timer(&core_.stats.prefill_ns);
  return RunChunk(ids, marked, out_tokens);
}

Status Prefiller::PrefillLogits(Span<const int32_t> ids, const float** out_logits) {
  *out_logits = nullptr;
  if (!core_.plan.options.all_logits) {
    return core_.diag.Fail(Status::kBadState, "the session was created with all_logits = 0");
  }
  return PrefillChunk({sequences_.selected(), ids}, out_logits);
}

Status Prefiller::PrefillMasked(Span<const int32_t> ids, const RowMask& mask,
                                const float** out_logits) {
  if (out_logits != nullptr) *out_logits = nullptr;
  ARN_TRY(CheckMask(ids.size(), mask, out_logits != nullptr));
  return PrefillChunk({sequences_.selected(), ids, &mask}, out_logits);
}

// Checks what model, session and backend can do. A run checks the numbers of the mask.
Status Prefiller::CheckMask(size_t n_ids, const RowMask& mask, bool wants_logits) const {
  Diag& diag = core_.diag;
  if (wants_logits && !core_.plan.options.all_logits) {
    return diag.Fail(Status::kBadState, "the session was created with all_logits = 0");
  }
  if (core_.plan.options.no_cache) {
    return diag.Fail(Status::kUnsupported, "a mask needs a session with a cache");
  }
  if (sequences_.HasState()) {
    return diag.Fail(Status::kUnsupported,
                     "layers with a recurrent state take no mask: they run tokens in order");
  }
  if (!executor_.backend().takes_masks) {
    return diag.Fail(Status::kUnsupported, "the backend %s takes no mask",
                     executor_.backend().name);
  }
  if (mask.positions != nullptr && HasRelativePositions(core_.plan.program)) {
    return diag.Fail(Status::kUnsupported,
                     "positions: the model's attention depends on the distance of tokens in the "
                     "sequence (ALiBi, relative biases)");
  }
  const size_t end = sequences_.length() + n_ids;
  if (mask.visible != nullptr && mask.first > end) {
    return diag.Fail(Status::kBadArgument, "first is %u, the sequence then has %zu tokens",
                     mask.first, end);
  }
  return Status::kOk;
}

Status Prefiller::PrefillChunk(const SessionPart& part, const float** out_logits) {
  const uint32_t selected = part.sequence;
  const Span<const int32_t> ids = part.ids;
  if (ids.empty() || ids.size() > core_.plan.options.prefill_chunk) {
    return core_.diag.Fail(Status::kBadArgument, "%zu tokens, a chunk has 1 to %u", ids.size(),
                           core_.plan.options.prefill_chunk);
  }
  ARN_TRY(sequences_.CheckIds(ids));
  ARN_TRY(sequences_.CheckRoom(selected, ids.size()));
  Timer timer(&core_.stats.prefill_ns);
  // A shift would move the tokens that a mask is about.
  if (part.mask != nullptr && sequences_.IsFull(selected)) {
    return sequences_.ContextFullError(selected);
  }
  size_t n = 0;
  ARN_TRY(NextChunk(selected, ids.size(), core_.plan.options.prefill_chunk, &n));
  if (n < ids.size()) {
    return core_.diag.Fail(Status::kContextFull, "%zu tokens after %u do not fit a context of %u",
                           ids.size(), sequences_.length(), cache().capacity());
  }
  const uint32_t before = sequences_.length();
  ARN_TRY(runner_.RunPending(selected, 0));  // the rows of logits are those of `ids`
  ARN_TRY(runner_.Run(Span<const SessionPart>(&part, 1),
                      out_logits == nullptr ? LogitRows::kLastOfEach : LogitRows::kAll));
  sequences_.At(selected).n_generated = 0;
  core_.stats.prefill_tokens += n;
  if (out_logits == nullptr) return Status::kOk;
  // Without a cache the earlier tokens ran too.
  const uint64_t first = core_.plan.options.no_cache ? before : 0;
  const uint64_t vocab = core_.plan.program.vocab;
  const float* rows = core_.memory.As<float>(core_.plan.program.logits) + first * vocab;
  *out_logits = rows;
  if (sequences_.size() > 1) {
    std::memcpy(sequences_.LogitsOf(selected), rows + (n - 1) * vocab, vocab * sizeof(float));
  } else {
    logits().UseRow(static_cast<uint32_t>(first + n - 1));
  }
  sequences_.AddLogits(selected);
  return Status::kOk;
}

}  // namespace arn
