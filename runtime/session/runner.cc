#include "runtime/session/runner.h"

#include <cstring>

#include "platform/base/arith.h"
#include "runtime/speculate/availability.h"

namespace arn {
namespace {

// A shift drops this fraction of the unpinned tokens: small enough to keep most of the past, large
// enough that re-rotating the moved keys is rare.
constexpr uint32_t kShiftPart = 4;

bool EndsWithMark(Span<const SnapshotPlace> places, uint32_t length) {
  if (places.empty()) return false;
  const SnapshotPlace& last = places[places.size() - 1];
  return last.is_mark && last.position == length;
}

}  // namespace

// With several sequences, logits are copied to host memory. With one greedy sequence a decode step
// returns only the argmax. Prompts, and decode steps once the caller has requested logits, return
// the logits at once, so that the output head does not run twice.
void Runner::AskForLogits(RunArgs* args, int32_t* best) {
  const LogitsAccess* access = executor_.backend().logits;
  if (access == nullptr || sequences_.size() != 1 || core_.plan.options.no_cache ||
      args->logit_rows != LogitRows::kLastOfEach) {
    return;
  }
  const bool takes_best = sequences_.At(0).sampler.takes_best();
  if (access->finds_best && takes_best && !logits().wants_all() && args->tokens.size() == 1) {
    args->best_id = best;
  }
  args->leaves_logits = !access->finds_best || args->best_id != nullptr;
  // Else the output head, which writes over them, could not be cancelled.
  args->may_lose_logits = access->finds_best && args->sequences[0].more_logit_rows == 0 &&
                          (!logits().Has(0) || logits().CanReadAgain());
}

void Runner::AskForCopies(Span<const SessionPart> parts, LogitRows logit_rows) {
  const LogitsAccess* access = executor_.backend().logits;
  const bool copies = access != nullptr && access->copies_rows && sequences_.size() > 1 &&
                      logit_rows == LogitRows::kLastOfEach;
  auto* rows = core_.memory.As<SequenceRows>(core_.plan.rows);
  for (size_t i = 0; i < parts.size(); ++i) {
    const uint32_t sequence = parts[i].sequence;
    const bool takes_best = copies && sequences_.At(sequence).sampler.takes_best();
    rows[i].logits_copy = copies ? sequences_.LogitsOf(sequence) : nullptr;
    rows[i].best_id = takes_best ? &sequences_.At(sequence).best_id : nullptr;
  }
}

Status Runner::RunBackend(Span<const SessionPart> parts, size_t n_tokens, LogitRows logit_rows,
                          const RowMask* mask) {
  RunArgs args;
  args.edits = cache().edits();
  args.tokens = {core_.memory.As<int32_t>(core_.plan.tokens), n_tokens};
  args.sequences = {core_.memory.As<SequenceRows>(core_.plan.rows), parts.size()};
  args.logit_rows = logit_rows;
  args.mask = mask;
  args.embeddings = sequences_.Embeddings();
  args.row_table = RowTable(core_.model);
  args.features = parts[0].features;
  args.axis_positions = sequences_.AxisPositions(args, parts);
  args.cancel = is_cancellable_ ? &core_.cancel : nullptr;
  executor_.Observe(&args);
  int32_t best = LogitsState::kNoToken;
  AskForLogits(&args, &best);
  AskForCopies(parts, logit_rows);
  args.attention_observer =
      attention_observer_.before != nullptr ? &attention_observer_ : pager_.attention_observer();
  pager_.BeforeEdits(args.edits);
  const Status status = executor_.Run(args);
  throttle_.End();
  if (status == Status::kOk) {
    executor_.Count(args);
    pager_.EndRun(args);
    logits().EndRun(args.leaves_logits, best);
  }
  cache().ClearEdits();
  if (status == Status::kCancelled) {
    core_.ClearCancel();
    if (args.may_lose_logits) logits().LoseHost();
  }
  return status;
}

Status Runner::RunWithCache(Span<const SessionPart> parts, LogitRows logit_rows) {
  const Status status = TryWithCache(parts, logit_rows);
  if (!executor_.CanFallBack(status)) return status;
  ARN_TRY(recompute_.FallBack(status));
  return TryWithCache(parts, logit_rows);
}

Status Runner::TryWithCache(Span<const SessionPart> parts, LogitRows logit_rows) {
  // Copies the ids to the session's memory: a backend may read them after the caller's buffer is
  // gone.
  int32_t* tokens = core_.memory.As<int32_t>(core_.plan.tokens);
  auto* rows = core_.memory.As<SequenceRows>(core_.plan.rows);
  const Span<Growth> growths(core_.memory.As<Growth>(core_.plan.growths), parts.size());
  uint32_t n_tokens = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const uint32_t sequence = parts[i].sequence;
    const Span<const int32_t> ids = parts[i].ids;
    const uint32_t n_pending = sequences_.At(sequence).n_pending;
    const auto n = n_pending + static_cast<uint32_t>(ids.size());
    std::memcpy(tokens + n_tokens, sequences_.History(sequence) + cache().length(sequence),
                n_pending * sizeof(int32_t));
    std::memcpy(tokens + n_tokens + n_pending, ids.data(), ids.size() * sizeof(int32_t));
    growths[i] = {sequence, n};
    rows[i] = {n_tokens, n, cache().length(sequence), cache().tables(sequence),
               cache().encoder_rows(sequence)};
    if (kHasAdapters) rows[i].adapters = sequences_.AdaptersOf(sequence);
    rows[i].more_logit_rows = parts[i].n_guesses;
    n_tokens += n;
  }
  const Span<const Growth> grown(growths.data(), growths.size());
  const Status reserved = cache().Reserve(grown);
  if (reserved == Status::kContextFull) {
    ARN_TRY(RunEdits());  // quantises pages that became inactive
    return sequences_.ContextFullError(parts[0].sequence);
  }
  ARN_TRY(reserved);
  RowMask image_mask;
  const RowMask* mask = parts[0].mask;
  if (parts.size() == 1 && mask == nullptr) {
    mask = sequences_.SeeImagesBothWays({tokens, n_tokens}, rows[0].first_position, &image_mask);
  }
  ARN_TRY(RunBackend(parts, n_tokens, logit_rows, mask));
  cache().Commit(grown);
  for (const SessionPart& part : parts) {
    uint32_t& n_pending = sequences_.At(part.sequence).n_pending;
    core_.stats.recomputed_tokens += n_pending;
    n_pending = 0;
  }
  if (kHasSpeculation && observer_ != nullptr && parts.size() == 1) {
    observer_->OnRun({sequences_.History(parts[0].sequence), rows[0].first_position},
                     {tokens, n_tokens});
  }
  return Status::kOk;
}

// Runs all tokens of the sequence at once, from scratch. Keeps them if the run fails.
Status Runner::RunWithoutCache(const SessionPart& part, LogitRows logit_rows) {
  const uint32_t before = cache().length(part.sequence);
  const auto added = static_cast<uint32_t>(part.ids.size());
  int32_t* tokens = core_.memory.As<int32_t>(core_.plan.tokens);
  std::memcpy(tokens, sequences_.History(part.sequence), before * sizeof(int32_t));
  std::memcpy(tokens + before, part.ids.data(), added * sizeof(int32_t));
  cache().Cut(part.sequence, 0);
  const Growth old{part.sequence, before}, whole{part.sequence, before + added};
  const Status reserved = cache().Reserve(Span<const Growth>(&whole, 1));
  Status status = reserved;
  if (reserved == Status::kOk) {
    auto* rows = core_.memory.As<SequenceRows>(core_.plan.rows);
    *rows = {0, whole.n_tokens, 0, cache().tables(part.sequence),
             cache().encoder_rows(part.sequence)};
    if (kHasAdapters) rows->adapters = sequences_.AdaptersOf(part.sequence);
    status = RunBackend({&part, 1}, whole.n_tokens, logit_rows, nullptr);
    if (executor_.CanFallBack(status)) {
      recompute_.SwitchToFallback(status);
      if (core_.model.spec.encoder.exists()) return recompute_.LoseEncoderOutputs();
      status = RunBackend({&part, 1}, whole.n_tokens, logit_rows, nullptr);
    }
  }
  cache().Commit(Span<const Growth>(status == Status::kOk ? &whole : &old, 1));
  if (reserved == Status::kContextFull) return sequences_.ContextFullError(part.sequence);
  return status;
}

uint32_t Runner::RunTokens(uint32_t sequence) const {
  return Min(core_.chunk_rows, sequences_.cache().TokensToSnapshot(sequence));
}

Status Runner::RunPending(uint32_t sequence, uint32_t beside) {
  uint32_t& n_pending = sequences_.At(sequence).n_pending;
  while (n_pending > 0 && (beside == 0 || n_pending + beside > RunTokens(sequence))) {
    const uint32_t all = n_pending, n = Min(all, RunTokens(sequence));
    const SessionPart part{sequence, {sequences_.History(sequence) + cache().length(sequence), n}};
    n_pending = 0;
    const Status status = Run(Span<const SessionPart>(&part, 1), LogitRows::kNone);
    if (status == Status::kOk) {
      core_.stats.recomputed_tokens += n;
      n_pending = all - n;
    } else if (status != Status::kDeviceLost) {
      n_pending = all;
    }
    ARN_TRY(status);
  }
  return Status::kOk;
}

bool Runner::FitWithPending(Span<const SessionPart> parts) const {
  uint64_t rows = 0;
  for (const SessionPart& part : parts) {
    rows += sequences_.At(part.sequence).n_pending + part.ids.size();
  }
  return rows <= core_.plan.program.max_rows;
}

// A failed run leaves sequences and logits unchanged: a backend writes logits last.
Status Runner::Run(Span<const SessionPart> parts, LogitRows logit_rows) {
  const bool takes_pending = parts.size() == 1 || FitWithPending(parts);
  for (const SessionPart& part : parts) {
    ARN_TRY(RunPending(part.sequence, takes_pending ? static_cast<uint32_t>(part.ids.size()) : 0));
  }
  const Status begun = throttle_.Begin(parts, core_.cancel);
  if (begun == Status::kCancelled) {
    core_.ClearCancel();
    return RunError(begun, parts[0].sequence);
  }
  ARN_TRY(begun);
  if (core_.plan.options.no_cache) {
    for (const SessionPart& part : parts) {
      const Status status = RunWithoutCache(part, logit_rows);
      if (status != Status::kOk) return RunError(status, part.sequence);
      Committed(Span<const SessionPart>(&part, 1), logit_rows);
    }
    return Status::kOk;
  }
  const Status status = RunWithCache(parts, logit_rows);
  if (status != Status::kOk) return RunError(status, parts[0].sequence);
  Committed(parts, logit_rows);
  return Status::kOk;
}

void Runner::Committed(Span<const SessionPart> parts, LogitRows logit_rows) {
  for (const SessionPart& part : parts) {
    sequences_.Remember(part);
    logits().Drop(part.sequence);
  }
  if (logit_rows == LogitRows::kLastOfEach) KeepLogits(parts);
}

// The next run overwrites the rows, so with several sequences each keeps its own.
void Runner::KeepLogits(Span<const SessionPart> parts) {
  const uint64_t vocab = core_.plan.program.vocab;
  const float* row = core_.memory.As<float>(core_.plan.program.logits);
  const auto* rows = core_.memory.As<SequenceRows>(core_.plan.rows);
  for (size_t i = 0; i < parts.size(); ++i) {
    const uint32_t s = parts[i].sequence;
    if (sequences_.size() > 1 && rows[i].logits_copy == nullptr) {
      std::memcpy(sequences_.LogitsOf(s), row, vocab * sizeof(float));
    }
    sequences_.AddLogits(s, rows[i].best_id == nullptr ? LogitsState::kNoToken : *rows[i].best_id);
    sequences_.At(s).state_before = sequences_.At(s).sampler.state();
    row += (1 + parts[i].n_guesses) * vocab;
  }
}

// Whatever fails, the tokens stay in the sequence: they are pending. A mark at the end moves before
// the last token, so that going on from there again runs no more than this one.
Status Runner::RunLastFromSnapshot(uint32_t sequence) {
  const uint32_t length = sequences_.Length(sequence);
  uint32_t& n_pending = sequences_.At(sequence).n_pending;
  const bool is_marked = EndsWithMark(cache().snapshots().places(sequence), length);
  sequences_.ReturnBeforeLast(sequence);
  --n_pending;
  const SessionPart part{sequence, {sequences_.History(sequence) + length - 1, 1}};
  Status status = is_marked ? RunPending(sequence, 0) : Status::kOk;
  if (status == Status::kOk) {
    if (is_marked) cache().KeepSnapshot(sequence, true);
    status = Run({&part, 1}, LogitRows::kLastOfEach);
  }
  if (status == Status::kOk) {
    ++core_.stats.recomputed_tokens;
  } else if (status != Status::kDeviceLost) {
    n_pending = length - cache().length(sequence);
  }
  return status;
}

// The token stays in the sequence whatever happens: the run is not cancellable, and fails before it
// starts if a page is missing.
Status Runner::RunLastAgain(uint32_t sequence) {
  const uint32_t last = sequences_.Length(sequence) - 1;
  if (sequences_.At(sequence).n_pending != 0 ||
      (cache().snapshots().is_on() && cache().FirstRewindPosition(sequence) <= last)) {
    return RunLastFromSnapshot(sequence);
  }
  if (!core_.plan.options.no_cache) {
    if (last < cache().FirstRewindPosition(sequence)) {
      return core_.diag.Fail(
          Status::kBadState,
          "sequence %u has no logits, and its last token, at position %u, cannot run "
          "again: %s; prefill one more token first",
          sequence, last,
          sequences_.HasState() && !cache().snapshots().is_on()
              ? "the model has layers with a recurrent state, which cannot be rewound "
                "without snapshots (state_snapshots of the session options)"
              : "the pages of the window at that position are gone");
    }
    if (!cache().CanRepeatLast(sequence)) {
      return core_.diag.Fail(
          Status::kContextFull,
          "sequence %u has no logits, and no KV page is free to run its last token "
          "again beside the sequences that share it",
          sequence);
    }
  }
  const int32_t id = sequences_.History(sequence)[last];
  const SessionPart part{sequence, {&id, 1}};
  const bool was_planned = executor_.is_planned_in_use();
  cache().Cut(sequence, last);
  is_cancellable_ = core_.plan.options.no_cache;
  const Status status = core_.plan.options.no_cache
                            ? RunWithoutCache(part, LogitRows::kLastOfEach)
                            : RunWithCache({&part, 1}, LogitRows::kLastOfEach);
  is_cancellable_ = true;
  if (status == Status::kOk) {
    ++core_.stats.recomputed_tokens;
    Committed({&part, 1}, LogitRows::kLastOfEach);
  } else if (executor_.is_planned_in_use() == was_planned) {
    const Growth growth{sequence, 1};
    cache().Commit(Span<const Growth>(&growth, 1));
  }
  return status == Status::kOk ? status : RunError(status, sequence);
}

Status Runner::RunError(Status status, uint32_t sequence) {
  if (status != Status::kCancelled) return status;
  return core_.diag.Fail(status, "cancelled after %u tokens", cache().length(sequence));
}

Status Runner::HeedCancel(uint32_t sequence) {
  if (core_.cancel.exchange(0, std::memory_order_relaxed) == 0) return Status::kOk;
  return RunError(Status::kCancelled, sequence);
}

Status Runner::MakeRoomForOne(uint32_t sequence) {
  if (!sequences_.IsFull(sequence)) return Status::kOk;
  if (core_.plan.options.overflow != Overflow::kShift) return sequences_.ContextFullError(sequence);
  return Shift(sequence);
}

Status Runner::Shift(uint32_t sequence) {
  const auto unit =
      static_cast<uint32_t>(ShiftTokens({core_.plan.cache.groups, core_.plan.cache.n_groups}));
  const auto pinned = static_cast<uint32_t>(CeilDiv(core_.plan.options.pinned_tokens, unit) * unit);
  const uint32_t units = (cache().length(sequence) - pinned) / unit;
  const uint32_t dropped = Max(1u, units / kShiftPart) * unit;
  const Status status =
      cache().Shift(sequence, pinned, dropped, sequences_.PositionsOf(sequence, pinned, dropped));
  if (status == Status::kContextFull) {
    return core_.diag.Fail(status, "no free KV pages to copy shared keys for the context shift");
  }
  ARN_TRY(status);
  int32_t* ids = sequences_.History(sequence);
  std::memmove(ids + pinned, ids + pinned + dropped,
               (cache().length(sequence) - pinned) * sizeof(int32_t));
  Sequence& shifted = sequences_.At(sequence);
  shifted.n_dropped += dropped;
  shifted.n_pinned = pinned;
  shifted.n_generated = Min(shifted.n_generated, cache().length(sequence));
  return RunEdits();
}

Status Runner::RunEdits() {
  RunArgs args;
  args.edits = cache().edits();
  pager_.BeforeEdits(args.edits);
  const Status status = args.edits.empty() ? Status::kOk : executor_.Run(args);
  cache().ClearEdits();
  return executor_.CanFallBack(status) ? recompute_.FallBack(status) : status;
}

}  // namespace arn
