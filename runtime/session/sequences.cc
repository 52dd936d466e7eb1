// Operations on whole sequences: select, fork, rewind, shift, batched steps.
#include <cstring>

#include "platform/base/arith.h"
#include "platform/os/pages.h"
#include "runtime/session/session.h"
#include "runtime/session/timer.h"

namespace arn {
namespace {

// A shift drops this fraction of the unpinned tokens: small enough to keep most of the past, large
// enough that re-rotating the moved keys is rare.
constexpr uint32_t kShiftPart = 4;

}  // namespace

Status Session::CheckSequences(Span<const uint32_t> sequences) {
  if (sequences.empty() || sequences.size() > sequences_.size()) {
    return diag_.Fail(Status::kBadArgument, "%zu sequences, expected 1 to max_sequences %zu",
                      sequences.size(), sequences_.size());
  }
  for (size_t i = 0; i < sequences.size(); ++i) {
    if (sequences[i] >= sequences_.size()) {
      return diag_.Fail(Status::kBadArgument, "sequence %u, max_sequences is %zu", sequences[i],
                        sequences_.size());
    }
    for (size_t j = 0; j < i; ++j) {
      if (sequences[j] == sequences[i]) {
        return diag_.Fail(Status::kBadArgument, "sequence %u is there twice", sequences[i]);
      }
    }
  }
  return Status::kOk;
}

Status Session::Select(uint32_t sequence) {
  ARN_TRY(CheckSequences(Span<const uint32_t>(&sequence, 1)));
  selected_ = sequence;
  return Status::kOk;
}

void Session::Reset() {
  cache_.Clear(selected_);
  At(selected_).has_logits = false;
}

Status Session::Fork(uint32_t from, uint32_t to) {
  const uint32_t both[2] = {from, to};
  ARN_TRY(CheckSequences(Span<const uint32_t>(both, 2)));
  if (cache_.Fork(from, to) != Status::kOk) {
    return diag_.Fail(Status::kBadState, "sequence %u has %u tokens, a fork needs an empty one", to,
                      cache_.length(to));
  }
  std::memcpy(History(to), History(from), cache_.length(from) * sizeof(int32_t));
  At(to) = At(from);
  At(to).sampler.Branch(to);
  if (At(from).has_logits) {
    std::memcpy(LogitsOf(to), LogitsOf(from), uint64_t{plan_.program.vocab} * sizeof(float));
  }
  return Status::kOk;
}

Status Session::Rewind(uint32_t position) {
  if (position > length()) {
    return diag_.Fail(Status::kBadArgument, "position %u, the sequence has %u tokens", position,
                      length());
  }
  if (position < first_rewind_position() && HasState()) {
    return diag_.Fail(Status::kBadState,
                      "position %u: the model has layers whose state cannot be turned back from "
                      "position %u; reset and prefill again",
                      position, length());
  }
  if (position < first_rewind_position()) {
    return diag_.Fail(Status::kBadState,
                      "position %u: the window's pages before position %u are gone", position,
                      first_rewind_position());
  }
  if (position == length()) return Status::kOk;
  At(selected_).has_logits = false;
  cache_.Cut(selected_, position);
  return Status::kOk;
}

bool Session::HasState() const {
  for (const KvGroup& group : plan_.program.kv_groups) {
    if (group.state_floats != 0) return true;
  }
  return false;
}

uint32_t Session::first_rewind_position() const {
  return plan_.options.no_cache ? 0 : cache_.FirstRewindPosition(selected_);
}

Span<const int32_t> Session::history() const { return {History(selected_), length()}; }

Status Session::MakeRoomForOne(uint32_t sequence) {
  if (!IsFull(sequence)) return Status::kOk;
  if (plan_.options.overflow != Overflow::kShift) return ContextFullError(sequence);
  return Shift(sequence);
}

Status Session::Shift(uint32_t sequence) {
  const auto unit = static_cast<uint32_t>(ShiftTokens({plan_.cache.groups, plan_.cache.n_groups}));
  const auto pinned = static_cast<uint32_t>(CeilDiv(plan_.options.pinned_tokens, unit) * unit);
  const uint32_t units = (cache_.length(sequence) - pinned) / unit;
  const uint32_t dropped = Max(1u, units / kShiftPart) * unit;
  const Status status = cache_.Shift(sequence, pinned, dropped);
  if (status == Status::kContextFull) {
    return diag_.Fail(status, "no free KV pages for the keys of a shared sequence that move");
  }
  ARN_TRY(status);
  int32_t* ids = History(sequence);
  std::memmove(ids + pinned, ids + pinned + dropped,
               (cache_.length(sequence) - pinned) * sizeof(int32_t));
  return RunEdits();
}

Status Session::RunEdits() {
  RunArgs args;
  args.edits = cache_.edits();
  kv_pager_.BeforeEdits(args.edits);
  const Status status =
      args.edits.empty() ? Status::kOk : in_use_->backend->run(in_use_->state, args, &diag_);
  cache_.ClearEdits();
  return CanFallBack(status) ? FallBack(status) : status;
}

Status Session::StepBatch(Span<const uint32_t> sequences, Span<const int32_t> ids) {
  ARN_TRY(CheckSequences(sequences));
  ARN_TRY(CheckIds(ids));
  for (uint32_t sequence : sequences) ARN_TRY(CheckEncoderOutput(sequence));
  Timer timer(&stats_.decode_ns);
  for (uint32_t sequence : sequences) ARN_TRY(MakeRoomForOne(sequence));
  const Span<Part> parts(memory_.As<Part>(plan_.parts), sequences.size());
  for (size_t i = 0; i < parts.size(); ++i) parts[i] = {sequences[i], ids.subspan(i, 1)};
  ARN_TRY(Run(Span<const Part>(parts.data(), parts.size()), LogitRows::kLastOfEach));
  stats_.decode_tokens += sequences.size();
  return Status::kOk;
}

Status Session::DecodeBatch(Span<const uint32_t> sequences, Span<int32_t> out_ids) {
  ARN_TRY(CheckSequences(sequences));
  for (uint32_t sequence : sequences) ARN_TRY(NeedLogits(sequence));
  Timer timer(&stats_.decode_ns);
  auto* parts = memory_.As<Part>(plan_.parts);
  size_t n_parts = 0;
  Status status = HeedCancel(sequences[0]);
  for (size_t i = 0; i < sequences.size() && status == Status::kOk; ++i) {
    if (!IsAtLast(sequences[i])) {
      status = MakeRoomForOne(sequences[i]);
      parts[n_parts++] = {sequences[i], {&out_ids[i], 1}};
    }
  }
  ARN_TRY(status);
  for (size_t i = 0; i < sequences.size(); ++i) ARN_TRY(Choose(sequences[i], &out_ids[i]));
  if (n_parts > 0) status = Run(Span<const Part>(parts, n_parts), LogitRows::kLastOfEach);
  // With no_cache tokens run one by one; those that ran keep their random numbers.
  for (size_t i = 0; i < sequences.size() && status != Status::kOk; ++i) Unchoose(sequences[i]);
  ARN_TRY(status);
  // Sequences without a part have reached their last token.
  size_t n_seen = 0;
  for (uint32_t sequence : sequences) {
    const bool has_run = n_seen < n_parts && parts[n_seen].sequence == sequence;
    if (has_run) ++n_seen;
    if (!has_run) At(sequence).has_logits = false;
  }
  stats_.decode_tokens += sequences.size();
  return Status::kOk;
}

uint64_t Session::kv_used_bytes() const {
  uint64_t bytes = 0;
  for (uint32_t g = 0; g < cache_.n_groups(); ++g) {
    const KvGroup& group = plan_.program.kv_groups[g];
    bytes += cache_.pool(g).n_used() * group.active.page_bytes;
    bytes += cache_.quantised_pool(g).n_used() * group.quantised.page_bytes;
  }
  return bytes;
}

Status Session::TrimPool(const PagePool& pool, const KvPages& pages, bool is_in_file,
                         uint64_t* bytes) {
  for (uint32_t first = 0; first < pool.n_pages();) {
    uint32_t last = first;
    while (last < pool.n_pages() && pool.References(last) == 0) ++last;
    for (uint32_t i = 0; i < pages.n_pieces() && last > first; ++i) {
      const Slice piece = pages.Piece(first, i);
      const uint64_t n = (last - first) * piece.bytes;
      const Span<std::byte> unused(memory_.At(piece), static_cast<size_t>(n));
      ARN_TRY(is_in_file ? KvPager::Discard(unused) : TrimPages(unused));
      *bytes += n;
    }
    first = last + 1;
  }
  return Status::kOk;
}

Status Session::Trim(uint64_t* out_bytes) {
  *out_bytes = 0;
  if (owned_.empty()) {
    return diag_.Fail(Status::kUnsupported, "the memory is the caller's: only the caller can trim");
  }
  if (!in_use_->backend->kv_in_memory) {
    return diag_.Fail(Status::kUnsupported, "the KV pages lie on the device: nothing to trim");
  }
  ARN_TRY(RunEdits());
  for (uint32_t g = 0; g < cache_.n_groups(); ++g) {
    const KvGroup& group = plan_.program.kv_groups[g];
    ARN_TRY(TrimPool(cache_.pool(g), group.active, plan_.IsInFile(g), out_bytes));
    ARN_TRY(TrimPool(cache_.quantised_pool(g), group.quantised, plan_.IsInFile(g), out_bytes));
  }
  return Status::kOk;
}

}  // namespace arn
